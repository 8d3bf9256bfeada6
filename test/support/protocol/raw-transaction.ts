import { concatBytes, fromHex, joinBytes, reversed } from '../../../backend/src/protocol/bytes.js'
import { encodeOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'

/** An input to write: the coin and what unlocks it. */
export interface FakeInput {
  outpoint: Outpoint
  unlockingScript: Uint8Array
  /** By default final. */
  sequence?: number
}

/** An output to write. */
export interface FakeOutput {
  satoshis: number
  lockingScript: Uint8Array
}

/** Serialises a transaction; of version 1 and without lock time where nothing else is said. */
export function encodeTransaction(parts: {
  inputs: readonly FakeInput[]
  outputs: readonly FakeOutput[]
  version?: number
  lockTime?: number
}): Uint8Array {
  const { inputs, outputs, version = 1, lockTime = 0 } = parts
  return joinBytes([
    u32(version),
    varint(inputs.length),
    ...inputs.flatMap(({ outpoint, unlockingScript, sequence = 0xffffffff }) => [
      encodeOutpoint(outpoint),
      varint(unlockingScript.length),
      unlockingScript,
      u32(sequence),
    ]),
    varint(outputs.length),
    ...outputs.flatMap(({ satoshis, lockingScript }) => [
      reversed(fromHex(satoshis.toString(16).padStart(16, '0'))),
      varint(lockingScript.length),
      lockingScript,
    ]),
    u32(lockTime),
  ])
}

/** A count or length as transactions and BEEF write it, up to 32 bits. */
export function varint(value: number): Uint8Array {
  if (value < 0xfd) return Uint8Array.of(value)
  if (value <= 0xffff) return Uint8Array.of(0xfd, value & 0xff, value >>> 8)
  return concatBytes(Uint8Array.of(0xfe), u32(value))
}

function u32(value: number): Uint8Array {
  return reversed(fromHex(value.toString(16).padStart(8, '0')))
}
