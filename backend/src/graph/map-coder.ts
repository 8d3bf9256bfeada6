import type { MapCommand } from '../protocol/bitcom.js'
import { ByteCursor, encodeVarint } from '../protocol/byte-cursor.js'
import { joinBytes, readUtf8, utf8 } from '../protocol/bytes.js'
import { boundedCommands, type MapChange, type MapState } from './map-merge.js'

/**
 * The stored form of MAP: a version byte, then the commands, each as a byte, the number of its words, and the words with their
 * lengths. About as long as the pushes that inscribed it, however short they are.
 */
const VERSION = 1
const COMMANDS = ['SET', 'REMOVE', 'ADD', 'DELETE', 'TRUNCATED'] as const

/** Encodes MAP commands within the size limit; deterministic. */
export function encodeMap(commands: MapCommand[]): Uint8Array {
  return encodeChanges(boundedCommands(commands))
}

/** Encodes a state, as commands that produce it from nothing, so that it can be merged like any other MAP. */
export function encodeMapState(state: MapState): Uint8Array {
  return encodeChanges(commandsFor(state))
}

/** Reads what {@link encodeMap} wrote. Only for bytes that this host wrote. */
export function decodeMap(bytes: Uint8Array): MapChange[] {
  const cursor = new ByteCursor(bytes, (message) => new Error(`stored MAP cannot be read: ${message}`))
  if (cursor.u8() !== VERSION) throw new Error('stored MAP has an unknown version')
  const changes: MapChange[] = []
  while (!cursor.atEnd) {
    const command = COMMANDS[cursor.u8()]
    const words = Array.from({ length: cursor.varint() }, () => readUtf8(cursor.take(cursor.varint())))
    const [key = '', ...values] = words
    switch (command) {
      case 'SET':
        changes.push({ command, entries: pairsOf(words) })
        break
      case 'REMOVE':
        changes.push({ command, keys: words })
        break
      case 'ADD':
      case 'DELETE':
        changes.push({ command, key, values })
        break
      case 'TRUNCATED':
        changes.push({ command })
        break
      case undefined:
        throw new Error('stored MAP has an unknown command')
    }
  }
  return changes
}

function commandsFor(state: MapState): MapChange[] {
  const changes: MapChange[] = []
  for (const [key, value] of state) {
    const last = changes.at(-1)
    if (typeof value !== 'string') changes.push({ command: 'ADD', key, values: [...value] })
    else if (last?.command === 'SET') last.entries.push([key, value])
    else changes.push({ command: 'SET', entries: [[key, value]] })
  }
  if (state.truncated) changes.push({ command: 'TRUNCATED' })
  return changes
}

function encodeChanges(changes: MapChange[]): Uint8Array {
  const parts: Uint8Array[] = [Uint8Array.of(VERSION)]
  for (const change of changes) {
    const words = wordsOf(change)
    parts.push(Uint8Array.of(COMMANDS.indexOf(change.command)), encodeVarint(words.length))
    for (const word of words.map(utf8)) parts.push(encodeVarint(word.length), word)
  }
  return joinBytes(parts)
}

function wordsOf(change: MapChange): string[] {
  switch (change.command) {
    case 'SET':
      return change.entries.flat()
    case 'REMOVE':
      return change.keys
    case 'TRUNCATED':
      return []
    default:
      return [change.key, ...change.values]
  }
}

function pairsOf(words: string[]): [string, string][] {
  return Array.from({ length: words.length / 2 }, (_, at) => [words[2 * at] ?? '', words[2 * at + 1] ?? ''])
}
