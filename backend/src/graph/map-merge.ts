import type { MapCommand } from '../protocol/bitcom.js'

/**
 * Metadata as a run of MAP commands leaves it: a key holds a text, or a list of texts without a twin, in the order in
 * which they came. A map and sets, since keys are a stranger's: `__proto__` is a key as any other.
 */
export type MapState = ReadonlyMap<string, string | ReadonlySet<string>>

/** Metadata of which nothing was said yet. */
export const EMPTY_MAP: MapState = new Map()

/**
 * What the commands make of `state`, which stays as it is. In order; merging a list of commands in two parts is merging
 * it at once. Time is linear in the state and the commands.
 *
 * MAP says that SET and REMOVE work as `setItem` and `removeItem` of a browser's store, ADD and DELETE as `add` and
 * `delete` of a JavaScript `Set` (its README, version 2). Where that is silent:
 *
 * - ADD to a key that holds a text makes a list that starts with the text: nothing that was said is lost. SET of a key
 *   that holds a list puts the text in its place.
 * - DELETE from a key that holds a text changes nothing: REMOVE is the word for that.
 * - A list that DELETE has emptied is gone with its key, as if REMOVE had "removed all list values at once".
 */
export function mergeMap(state: MapState, commands: Iterable<MapCommand>): MapState {
  const merged = new Map(state)
  // Lists that this call has made, and so may change; those of `state` are copied once, when first written to.
  const own = new Map<string, Set<string>>()
  const listOf = (key: string): Set<string> | undefined => {
    const value = merged.get(key)
    if (value === undefined || typeof value === 'string') return undefined
    const mine = own.get(key)
    if (mine === value) return mine
    return keep(key, new Set(value))
  }
  const keep = (key: string, list: Set<string>): Set<string> => {
    own.set(key, list)
    merged.set(key, list)
    return list
  }

  for (const command of commands) {
    switch (command.command) {
      case 'SET':
        for (const [key, value] of command.entries) merged.set(key, value)
        break
      case 'REMOVE':
        for (const key of command.keys) merged.delete(key)
        break
      case 'ADD': {
        const { key, values } = command
        const text = merged.get(key)
        const list = listOf(key) ?? keep(key, new Set(typeof text === 'string' ? [text] : []))
        for (const value of values) list.add(value)
        break
      }
      case 'DELETE': {
        const { key, values } = command
        const list = listOf(key)
        for (const value of values) list?.delete(value)
        if (list?.size === 0) merged.delete(key)
        break
      }
    }
  }
  return merged
}

export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue }

/** Keys whose texts are JSON (`protocol.md` 4). */
const JSON_KEYS: ReadonlySet<string> = new Set(['subTypeData', 'royalties'])

/**
 * Metadata as it is served: texts as texts, lists as arrays. Each text of `subTypeData` and `royalties`, alone or in a
 * list, is parsed as JSON where it parses, and stays a text where it does not.
 *
 * @returns An object without a prototype, for JSON.
 */
export function mapRecordOf(state: MapState): Record<string, JsonValue> {
  const record: Record<string, JsonValue> = Object.create(null)
  for (const [key, value] of state) {
    const served = JSON_KEYS.has(key) ? parsedWhereItParses : asText
    record[key] = typeof value === 'string' ? served(value) : Array.from(value, served)
  }
  return record
}

function asText(text: string): JsonValue {
  return text
}

function parsedWhereItParses(text: string): JsonValue {
  if (nestsTooDeep(text)) return text
  try {
    return JSON.parse(text)
  } catch {
    // It throws for what is no JSON, which is then a text.
    return text
  }
}

/**
 * Deeper than any record in use. `JSON.parse` takes any depth, but writing the record out again would overflow the
 * stack from some thousands on: text that a stranger chose would make every answer about the ordinal fail.
 */
const MAX_DEPTH = 100

function nestsTooDeep(text: string): boolean {
  let depth = 0
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (quoted) {
      if (character === '\\') at++
      else if (character === '"') quoted = false
    } else if (character === '"') quoted = true
    else if (character === '[' || character === '{') {
      if (++depth > MAX_DEPTH) return true
    } else if (character === ']' || character === '}') depth--
  }
  return false
}
