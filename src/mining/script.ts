import { OP } from '@bsv/sdk'
import { joinBytes } from '../../backend/src/protocol/bytes.js'
import { encodeMinimalPush } from '../../backend/src/protocol/script-walk.js'

/**
 * A stretch of script as people write it. A text holds words with blanks between them: names of opcodes without their
 * `OP_`, and decimal numbers, which are pushed as script numbers. Bytes are pushed as they are. A list is its parts
 * one after another.
 */
export type ScriptPart = string | Uint8Array | readonly ScriptPart[]

/**
 * The bytes of a stretch of script, every push minimal.
 * @throws RangeError where a word is neither an opcode nor a whole number.
 */
export function assemble(part: ScriptPart): Uint8Array {
  if (typeof part === 'string') return joinBytes(part.split(' ').map(assembleWord))
  return part instanceof Uint8Array ? encodeMinimalPush(part) : joinBytes(part.map(assemble))
}

function assembleWord(word: string): Uint8Array {
  if (/^-?(0|[1-9][0-9]*)$/.test(word)) return encodeMinimalPush(encodeNumber(Number(word)))
  const opcodes: Readonly<Record<string, unknown>> = OP
  const opcode = opcodes[`OP_${word}`]
  if (typeof opcode !== 'number') throw new RangeError(`no opcode: ${JSON.stringify(word)}`)
  return Uint8Array.of(opcode)
}

/** A script number: little-endian magnitude, the sign in the top bit, no spare bytes, zero being no bytes at all. */
function encodeNumber(value: number): Uint8Array {
  const bytes: number[] = []
  for (let rest = Math.abs(value); rest > 0; rest = Math.floor(rest / 256)) bytes.push(rest % 256)
  if ((bytes.at(-1) ?? 0) >= SIGN) bytes.push(0)
  const top = bytes.length - 1
  if (value < 0) bytes[top] = (bytes[top] ?? 0) | SIGN
  return Uint8Array.from(bytes)
}

const SIGN = 0x80
