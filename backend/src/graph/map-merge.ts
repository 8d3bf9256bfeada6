import type { MapCommand } from '../protocol/bitcom.js'

/**
 * The most metadata of an ordinal, and in one output, in bytes as {@link mapBytes} counts them. It is no setting, so that every
 * host stores and finds the same metadata.
 */
export const MAX_MAP_BYTES = 64 * 1024

/** A command, or the mark that something was left out here for lack of room. */
export type MapChange = MapCommand | { command: 'TRUNCATED' }

/**
 * Metadata after a sequence of MAP commands: a key has a text, or a list of distinct texts in the order in which they came. A Map
 * and Sets, as keys are untrusted: `__proto__` is a key like any other. `truncated` is set if something had no room.
 */
export type MapState = ReadonlyMap<string, string | ReadonlySet<string>> & { readonly truncated?: true }

/** Metadata before any command. */
export const EMPTY_MAP: MapState = new Map()

/**
 * Applies commands to `state`, which is not changed. Merging a list of commands in two parts gives the same as merging it at
 * once. Time is linear in the state and the commands.
 *
 * In MAP, SET and REMOVE work as `setItem` and `removeItem` of a browser's store, ADD and DELETE as `add` and `delete` of a
 * JavaScript `Set` (its README, version 2). What MAP leaves open:
 *
 * - ADD to a key that holds a text makes a list that starts with the text: nothing that was said is lost. SET of a key that holds
 *   a list puts the text in its place.
 * - DELETE from a key that holds a text changes nothing: REMOVE is the word for that.
 * - A list that DELETE has emptied is gone with its key, as if REMOVE had "removed all list values at once".
 *
 * Whatever has no room within {@link MAX_MAP_BYTES} is left out: for SET the whole entry, with the previous value of the key,
 * which no longer applies; for ADD the value. Shorter ones that follow may still fit. From then on the state is `truncated`,
 * whatever is removed later, so that it follows from the commands alone.
 */
export function mergeMap(state: MapState, commands: Iterable<MapChange>): MapState {
  const merger = new Merger(state)
  for (const command of commands) merger.apply(command)
  return merger.state
}

/** The length of metadata as JSON, in bytes: the key of each entry, its texts, and the punctuation. */
export function mapBytes(state: MapState): number {
  let bytes = 0
  for (const [key, value] of state) bytes += entryBytes(key, value)
  return bytes
}

function entryBytes(key: string, value: string | ReadonlySet<string>): number {
  if (typeof value === 'string') return textEntryBytes(key, value)
  let bytes = listBytes(key)
  for (const text of value) bytes += valueBytes(text)
  return bytes
}

/** Includes a colon and a comma. */
function textEntryBytes(key: string, text: string): number {
  return jsonBytes(key) + jsonBytes(text) + 2
}

/** The bytes of a list without its texts. */
function listBytes(key: string): number {
  return jsonBytes(key) + 4
}

function valueBytes(text: string): number {
  return jsonBytes(text) + 1
}

/** The length of a text as JSON in UTF-8; infinite if it cannot fit, to save serialising it. */
function jsonBytes(text: string): number {
  return text.length > MAX_MAP_BYTES ? Number.POSITIVE_INFINITY : Buffer.byteLength(JSON.stringify(text))
}

class Merger {
  private readonly merged: Map<string, string | Set<string> | ReadonlySet<string>>
  /** Lists that were created here, and may be changed; those of the state are copied at their first change. */
  private readonly own = new Map<string, Set<string>>()
  private bytes: number
  private truncated: boolean

  constructor(state: MapState) {
    this.merged = new Map(state)
    this.bytes = mapBytes(state)
    this.truncated = state.truncated === true
  }

  get state(): MapState {
    return this.truncated ? Object.assign(this.merged, { truncated: true as const }) : this.merged
  }

  apply(change: MapChange): void {
    switch (change.command) {
      case 'SET':
        for (const [key, value] of change.entries) this.set(key, value)
        break
      case 'REMOVE':
        for (const key of change.keys) this.remove(key)
        break
      case 'ADD':
        this.add(change.key, change.values)
        break
      case 'DELETE':
        this.delete(change.key, change.values)
        break
      case 'TRUNCATED':
        this.truncated = true
        break
    }
  }

  private set(key: string, value: string): void {
    const before = this.merged.get(key)
    const freed = before === undefined ? 0 : entryBytes(key, before)
    if (this.take(textEntryBytes(key, value) - freed)) this.merged.set(key, value)
    else this.remove(key)
  }

  private remove(key: string): void {
    const value = this.merged.get(key)
    if (value === undefined) return
    this.bytes -= entryBytes(key, value)
    this.merged.delete(key)
  }

  private add(key: string, values: string[]): void {
    const text = this.merged.get(key)
    let list = this.listOf(key)
    if (list === undefined) {
      const first = typeof text === 'string' ? [text] : []
      const [next = ''] = values
      // A list has at least one text.
      const needed = first.length === 0 ? valueBytes(next) : 0
      const grown = listBytes(key) + first.reduce((sum, each) => sum + valueBytes(each), 0)
      const freed = typeof text === 'string' ? textEntryBytes(key, text) : 0
      if (!this.hasRoom(grown - freed + needed)) {
        this.truncated = true
        return
      }
      this.bytes += grown - freed
      list = this.keep(key, new Set(first))
    }
    for (const value of values) if (!list.has(value) && this.take(valueBytes(value))) list.add(value)
  }

  private delete(key: string, values: string[]): void {
    const list = this.listOf(key)
    if (list === undefined) return
    for (const value of values) if (list.delete(value)) this.bytes -= valueBytes(value)
    if (list.size === 0) this.remove(key)
  }

  private hasRoom(bytes: number): boolean {
    return this.bytes + bytes <= MAX_MAP_BYTES
  }

  private take(bytes: number): boolean {
    const hasRoom = this.hasRoom(bytes)
    if (hasRoom) this.bytes += bytes
    else this.truncated = true
    return hasRoom
  }

  private listOf(key: string): Set<string> | undefined {
    const value = this.merged.get(key)
    if (value === undefined || typeof value === 'string') return undefined
    const mine = this.own.get(key)
    return mine === value ? mine : this.keep(key, new Set(value))
  }

  private keep(key: string, list: Set<string>): Set<string> {
    this.own.set(key, list)
    this.merged.set(key, list)
    return list
  }
}

/**
 * The commands of one output that fit within {@link MAX_MAP_BYTES}, counted as in a state, with the mark `TRUNCATED` if something
 * did not. A SET that does not fit removes its key: the previous value no longer applies.
 */
export function boundedCommands(commands: MapCommand[]): MapChange[] {
  let left = MAX_MAP_BYTES
  let truncated = false
  const fits = (bytes: number): boolean => {
    const hasRoom = bytes <= left
    if (hasRoom) left -= bytes
    else truncated = true
    return hasRoom
  }
  const bounded: MapChange[] = []
  for (const command of commands) bounded.push(...boundedCommand(command, fits))
  return truncated ? [...bounded, { command: 'TRUNCATED' }] : bounded
}

function boundedCommand(command: MapCommand, fits: (bytes: number) => boolean): MapCommand[] {
  switch (command.command) {
    case 'SET': {
      const bounded: Extract<MapCommand, { command: 'SET' | 'REMOVE' }>[] = []
      for (const [key, value] of command.entries) {
        const last = bounded.at(-1)
        if (fits(textEntryBytes(key, value))) {
          if (last?.command === 'SET') last.entries.push([key, value])
          else bounded.push({ command: 'SET', entries: [[key, value]] })
        } else if (fits(valueBytes(key))) bounded.push({ command: 'REMOVE', keys: [key] })
      }
      return bounded
    }
    case 'REMOVE': {
      const keys = command.keys.filter((key) => fits(valueBytes(key)))
      return keys.length === 0 ? [] : [{ command: 'REMOVE', keys }]
    }
    default: {
      const { key } = command
      if (!fits(listBytes(key))) return []
      const values = command.values.filter((value) => fits(valueBytes(value)))
      return values.length === 0 ? [] : [{ ...command, values }]
    }
  }
}

export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue }

/** Keys whose texts are JSON (`docs/spec/protocol.md`, Ordinals). */
const JSON_KEYS: ReadonlySet<string> = new Set(['subTypeData', 'royalties'])

export interface ServedMap {
  map: Record<string, JsonValue>
  /** Set if something was left out for lack of room. */
  mapTruncated?: true
}

/**
 * Metadata as it is served: texts as texts, lists as arrays. Each text of `subTypeData` and `royalties`, alone or in a list, is
 * parsed as JSON, and stays a text if it does not parse.
 *
 * @param most The most bytes of all entries together; one that does not fit is left out, and later ones may fit.
 */
export function servedMap(state: MapState, most = MAX_MAP_BYTES): ServedMap {
  const shown = new Map<string, string | ReadonlySet<string>>()
  let left = most
  for (const [key, value] of state) {
    const bytes = entryBytes(key, value)
    if (bytes > left) continue
    left -= bytes
    shown.set(key, value)
  }
  const isWhole = state.truncated !== true && shown.size === state.size
  return { map: mapRecordOf(shown), ...(!isWhole && { mapTruncated: true }) }
}

/**
 * All metadata, as in {@link servedMap}.
 *
 * @returns An object without a prototype, for JSON.
 */
export function mapRecordOf(state: MapState): Record<string, JsonValue> {
  const record: Record<string, JsonValue> = Object.create(null)
  for (const [key, value] of state) {
    const served = JSON_KEYS.has(key) ? parsedWhereItParses : (text: string): JsonValue => text
    record[key] = typeof value === 'string' ? served(value) : Array.from(value, served)
  }
  return record
}

function parsedWhereItParses(text: string): JsonValue {
  if (nestsTooDeep(text)) return text
  try {
    return JSON.parse(text)
  } catch {
    // Not JSON: it stays a text.
    return text
  }
}

/**
 * Deeper than any record in use. `JSON.parse` takes any depth, but serialising the record again overflows the stack from some
 * thousands on: one text could make every answer about the ordinal fail.
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
