import { concatBytes, fromHex, joinBytes, reversed } from '../../backend/src/protocol/bytes.js'
import { encodeOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'

/** An input to write: the coin and what unlocks it. */
export interface FakeInput {
  outpoint: Outpoint
  unlockingScript: Uint8Array
}

/** An output to write. */
export interface FakeOutput {
  satoshis: number
  lockingScript: Uint8Array
}

/** Serialises a transaction of version 1, final sequences and no lock time. */
export function encodeTransaction(parts: {
  inputs: readonly FakeInput[]
  outputs: readonly FakeOutput[]
}): Uint8Array {
  const { inputs, outputs } = parts
  return joinBytes([
    fromHex('01000000'),
    varint(inputs.length),
    ...inputs.flatMap(({ outpoint, unlockingScript }) => [
      encodeOutpoint(outpoint),
      varint(unlockingScript.length),
      unlockingScript,
      fromHex('ffffffff'),
    ]),
    varint(outputs.length),
    ...outputs.flatMap(({ satoshis, lockingScript }) => [
      reversed(fromHex(satoshis.toString(16).padStart(16, '0'))),
      varint(lockingScript.length),
      lockingScript,
    ]),
    fromHex('00000000'),
  ])
}

/** A count or length as transactions and BEEF write it, up to 32 bits. */
export function varint(value: number): Uint8Array {
  if (value < 0xfd) return Uint8Array.of(value)
  if (value <= 0xffff) return Uint8Array.of(0xfd, value & 0xff, value >>> 8)
  return concatBytes(Uint8Array.of(0xfe), reversed(fromHex(value.toString(16).padStart(8, '0'))))
}
