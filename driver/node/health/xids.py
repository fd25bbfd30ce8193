"""Which XIDs say something about the card, and which of them only a reset undoes.

Source: NVIDIA's catalogue of XIDs and its column "immediate action".
"""

# Errors of the program that uses the card; NVIDIA's own device plugin ignores the same ones.
OF_PROGRAMS = frozenset({13, 31, 43, 45, 68, 109})

# "Reset the GPU" or "restart the machine".
FATAL = {
    48: "uncorrectable memory error",
    62: "internal microcontroller halted",
    64: "memory row could not be remapped",
    74: "NVLink error",
    79: "fell off the bus",
    95: "uncontained memory error",
    110: "security fault",
    119: "GSP does not answer",
    120: "GSP error",
    136: "link training failed",
    140: "unrecovered ECC error",
    143: "card could not be initialised",
}


def named(number: int) -> str:
    """An XID with what it stands for, where that is known here."""
    return f"XID {number} ({FATAL[number]})" if number in FATAL else f"XID {number}"
