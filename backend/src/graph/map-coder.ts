import type { MapCommand } from '../protocol/bitcom.js'
import { utf8 } from '../protocol/bytes.js'
import type { MapState } from './map-merge.js'

/** MAP commands as they are kept: the same commands give the same bytes. */
export function encodeMap(commands: MapCommand[]): Uint8Array {
  return utf8(JSON.stringify(commands))
}

/** Reads what {@link encodeMap} wrote. Only for bytes that this host wrote. */
export function decodeMap(bytes: Uint8Array): MapCommand[] {
  return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8'))
}

/** Commands that make `state` out of nothing: so a state is kept, and merged on, as any other MAP is. */
export function commandsFor(state: MapState): MapCommand[] {
  return Array.from(state, ([key, value]) =>
    typeof value === 'string'
      ? { command: 'SET', entries: [[key, value]] }
      : { command: 'ADD', key, values: [...value] },
  )
}
