import { readUtf8 } from './bytes.js'
import { readMediaType } from './media-type.js'
import { readPushes } from './script-walk.js'

/** The address-form marker of MAP. */
export const MAP_MARKER = '1PuQa7K62MiKCtssSLKy1kh56WWU7MtUR5'
/** The address-form marker of B. */
export const B_MARKER = '19HxigV4QyBv3tHpQVcUEQyq1pzZVdoAut'

/** One protocol of an OP_RETURN tail: its first push as text, and the pushes after that. */
export interface BitcomProtocol {
  marker: string
  /** Views into the script. */
  pushes: Uint8Array[]
}

/** The fields of B (data, media type, encoding, file name) that are used. */
export interface BData {
  data: Uint8Array
  /** Also absent if it is not UTF-8, or has 256 bytes or more, as in an envelope. */
  mediaType?: string
}

/** One change of metadata (`docs/spec/protocol.md`, Scripts). */
export type MapCommand =
  | { command: 'SET'; entries: Array<[key: string, value: string]> }
  | { command: 'REMOVE'; keys: string[] }
  | { command: 'ADD'; key: string; values: string[] }
  | { command: 'DELETE'; key: string; values: string[] }

/**
 * The most pushes of an output that are read as protocols, and as MAP inside an envelope. No output in use has a hundredth of
 * that; without a bound, 64 MiB of one-byte pushes would take gigabytes.
 */
export const MAX_BITCOM_PUSHES = 10_000

const PIPE = 0x7c
/** Separates the commands of MAP, and may follow the last. */
const COMMAND_END = ':::'

/**
 * Reads the pushes after a top-level OP_RETURN, from offset `at` on, split into protocols at each push of `|`. Ends at the first
 * opcode that is no push, and after 10,000 pushes. Never throws.
 */
export function readBitcom(script: Uint8Array, at: number): BitcomProtocol[] {
  const protocols: BitcomProtocol[] = []
  let current: BitcomProtocol | undefined
  for (const push of readPushes(script, { at, limit: MAX_BITCOM_PUSHES })) {
    if (push.length === 1 && push[0] === PIPE) {
      current = undefined
    } else if (current === undefined) {
      current = { marker: readUtf8(push), pushes: [] }
      protocols.push(current)
    } else {
      current.pushes.push(push)
    }
  }
  return protocols
}

/** Reads the pushes after a B marker; undefined where there is no data push. */
export function readB(pushes: readonly Uint8Array[]): BData | undefined {
  const [data, mediaType] = pushes
  return data && { data, mediaType: mediaType && readMediaType(mediaType) }
}

/**
 * Reads the pushes after a MAP marker, or those of the script in an envelope's MAP tag: commands with `:::` between them (MAP
 * version 2). Text is UTF-8 with replacement. Commands that would change nothing are left out: unknown ones, and those without
 * arguments. A key without a value at the end of a SET is ignored.
 */
export function readMapScript(pushes: readonly Uint8Array[]): MapCommand[] {
  const commands: MapCommand[] = []
  let words: string[] = []
  const finish = (): void => {
    const command = readMapCommand(words)
    if (command !== undefined) commands.push(command)
    words = []
  }
  for (const push of pushes) {
    const word = readUtf8(push)
    if (word === COMMAND_END) finish()
    else words.push(word)
  }
  finish()
  return commands
}

function readMapCommand([command, ...words]: readonly string[]): MapCommand | undefined {
  const [key, ...values] = words
  if (command === undefined || key === undefined) return undefined
  switch (command) {
    case 'SET': {
      const entries: Array<[string, string]> = []
      for (let i = 0; i + 1 < words.length; i += 2) entries.push([words[i] ?? '', words[i + 1] ?? ''])
      return entries.length === 0 ? undefined : { command, entries }
    }
    case 'REMOVE':
      return { command, keys: words }
    case 'ADD':
    case 'DELETE':
      return values.length === 0 ? undefined : { command, key, values }
    default:
      return undefined
  }
}
