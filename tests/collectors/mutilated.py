"""Bytes that are nearly right."""

import random


def mutilated(whole: bytes, chance: random.Random) -> bytes:
    """What is whole, with bytes changed, cut out, doubled, or cut off."""
    damaged = bytearray(whole)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(damaged) + 1)
        match chance.randrange(5):
            case 0:
                damaged[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del damaged[at : at + chance.randint(1, 9)]
            case 2:
                damaged[at:at] = damaged[at : at + chance.randint(1, 9)]
            case 3:
                del damaged[at:]
            case 4:
                damaged[at:at] = bytes([chance.choice(b'{}[]":,0-9\\ \0\xff')])
    return bytes(damaged)
