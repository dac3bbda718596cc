"""Forty addresses that no message may go to, and the names among them with what a hostile resolver says of them."""

FORMS = (
    "http://example.com/", "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "//example.com/",
    "https://user:password@example.com/", "https://example.com:0/", "https://example.com:99999/", "https://",
    "https:///path", "https://exa mple.com/", "https://example.com\\@169.254.169.254/", "https://\uff45xample.com/",
)  # fmt: skip
"""Refused before any name is looked up."""

LITERALS = (
    "https://127.0.0.1/", "https://127.1/", "https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/",
    "https://0/", "https://10.0.0.1/", "https://172.16.0.1/", "https://192.168.1.1/", "https://169.254.169.254/latest",
    "https://100.64.0.1/", "https://100.100.100.200/", "https://168.63.129.16/", "https://192.0.0.192/",
    "https://224.0.0.1/", "https://255.255.255.255/", "https://[::1]/", "https://[::]/", "https://[fe80::1]/",
    "https://[fd00:ec2::254]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:a9fe:a9fe]/",
    "https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/", "https://[::127.0.0.1]/", "https://[ff02::1]/",
)  # fmt: skip
"""Addresses of machines near the server, in every way of writing them."""

NAMES = {
    "localhost": ["127.0.0.1"],
    "metadata.google.internal": ["169.254.169.254"],
    "127.0.0.1.nip.io": ["127.0.0.1"],
    "two-faces.example.com": ["93.184.215.14", "10.0.0.5"],
    "mapped.example.com": ["::ffff:10.0.0.5"],
    "zone.example.com": ["fe80::1%eth0"],
}
"""Names whose addresses are hostile."""

URLS = (*FORMS, *LITERALS, *(f"https://{name}/hook" for name in NAMES))
assert len(URLS) >= 40
