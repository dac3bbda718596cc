"""The claim of the noise scale, tested: does it predict the critical batch size of tuned runs?"""
