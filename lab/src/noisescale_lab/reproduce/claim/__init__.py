"""The claim of the noise scale, tested: does it foretell the critical batch size of tuned runs?"""
