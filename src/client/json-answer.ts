import { readStrictUtf8 } from '../../backend/src/protocol/bytes.js'

/** What bytes mean as JSON; undefined where they are none, which the reader of each field sees. */
export function readJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(readStrictUtf8(bytes) ?? '')
  } catch {
    // Not JSON is one of the things that are no answer.
    return undefined
  }
}

/** A field of an object; undefined where there is none, or no object. */
export function field(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as Record<string, unknown>)[key]
    : undefined
}
