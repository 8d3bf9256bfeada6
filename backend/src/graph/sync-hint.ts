import { fromHex, readUtf8, toHex, utf8 } from '../protocol/bytes.js'

/**
 * Metadata that minetree hosts add to a transaction that they serve over GASP. The peer's engine passes it to the topic manager. An
 * engine by itself serves nothing behind a proven transaction, and a peer that asked for it would lose the transaction that it has.
 */
export interface SyncHint {
  /** Inputs that spend ordinals, which the host serves as well. */
  inputs: number[]
  /** Raw transactions of the other coins that place the ordinals. No topic has them. */
  coins: Uint8Array[]
}

/** The longest hint, in bytes. */
export const MAX_HINT_BYTES = 512 * 1024
const PREFIX = 'minetree '
const HEX_PREFIX = toHex(utf8(PREFIX))
const MAX_LISTED = 100

export function encodeSyncHint({ inputs, coins }: SyncHint): string {
  return `${PREFIX}${inputs.join(',')} ${coins.map(toHex).join(',')}`
}

/** Metadata of a node: hex, as engines since 2.6 refuse anything else (`assertGASPNode` in `RemoteSecurity.ts` of `@bsv/overlay`). */
export function hexOfSyncHint(hint: SyncHint): string {
  return toHex(utf8(encodeSyncHint(hint)))
}

/** Reads a hint, as text or in hex; undefined if the untrusted bytes are none. */
export function decodeSyncHint(bytes: readonly number[] | undefined): SyncHint | undefined {
  if (bytes === undefined || bytes.length > 2 * MAX_HINT_BYTES) return undefined
  const sent = readUtf8(Uint8Array.from(bytes))
  // An engine passes on the characters of the metadata, not the bytes that they stand for.
  const text = sent.toLowerCase().startsWith(HEX_PREFIX) ? textOfHex(sent) : sent
  if (text === undefined || text.length > MAX_HINT_BYTES || !text.startsWith(PREFIX)) return undefined
  const [inputs, coins] = text.slice(PREFIX.length).split(' ').map(listed)
  if (inputs === undefined || coins === undefined) return undefined
  if (inputs.length > MAX_LISTED || coins.length > MAX_LISTED) return undefined
  if (!inputs.every((input) => /^\d{1,6}$/.test(input)) || !coins.every(isHex)) return undefined
  return { inputs: inputs.map(Number), coins: coins.map(fromHex) }
}

function listed(text: string): string[] {
  return text === '' ? [] : text.split(',')
}

function textOfHex(text: string): string | undefined {
  const hex = text.toLowerCase()
  return isHex(hex) ? readUtf8(fromHex(hex)) : undefined
}

function isHex(text: string): boolean {
  return text.length % 2 === 0 && !/[^0-9a-f]/.test(text)
}
