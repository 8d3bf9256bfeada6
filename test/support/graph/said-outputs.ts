import { MAP_MARKER } from '../../../backend/src/protocol/bitcom.js'
import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { encodePush } from '../../../backend/src/protocol/script-walk.js'
import { bitcomTail, inscriptionScript, mapTail, OPEN_LOCK, p2pkh } from '../protocol/fake-chain.js'
import { ownerOf } from './owner-of.js'

/** What an output says, as the test knows it without reading a script. */
export interface Said {
  satoshis: number
  script: Uint8Array
  /** The public key hash, in hex. */
  owner?: string
  content?: { contentType: string; body: Uint8Array }
  /** What the envelope names. */
  parent?: string
  map?: { command: 'SET' | 'ADD' | 'REMOVE'; key: string; value: string }
  /** That of the node that stands there. */
  domain?: string
}

export type OutputKind =
  | 'plain'
  | 'owned'
  | 'inscribed'
  | 'inscribed in parts'
  | 'inscribed with MAP'
  | 'owned inscribed'
  | 'child'
  | 'chunk'
  | 'set'
  | 'add'
  | 'remove'
  | 'larger'
  | 'larger inscribed'
  | 'empty'

/** Values that lookups ask for. */
export const CONTENT_TYPES = ['text/plain', 'text/css', 'gw/stream']
export const CHUNK_TYPE = 'gw/stream'
export const KEYS = [0, 1, 2]
/** A parent that nobody knows. */
export const PARENT = `${'ee'.repeat(32)}_1`

/**
 * An output of a kind. `key` and `text` are few, so that double spends show the same content.
 *
 * @param parents What a child may name.
 */
export function saying({
  kind,
  key,
  text,
  parents,
}: {
  kind: OutputKind
  key: number
  text: number
  parents: readonly string[]
}): Said {
  const lock = kind.startsWith('owned') ? p2pkh(key) : OPEN_LOCK
  const owner = kind.startsWith('owned') ? { owner: ownerOf(key) } : {}
  const content = { contentType: 'text/plain', body: utf8(`text ${text}`) }
  const entry = { key: `key ${key}`, value: `value ${text}` }
  const inscribed = (satoshis: number, contentType = 'text/plain', parent?: string): Said => {
    const typed = { ...content, contentType }
    const script = inscriptionScript({ ...typed, lock, ...(parent && { parent: parseOutpoint(parent) }) })
    return { satoshis, script, content: typed, ...owner, ...(parent && { parent }) }
  }
  const mapped = (command: 'SET' | 'ADD' | 'REMOVE'): Said => {
    const words = command === 'REMOVE' ? [entry.key] : [entry.key, entry.value]
    const script = concatBytes(lock, bitcomTail([MAP_MARKER, command, ...words]))
    return { satoshis: 1, script, map: { command, ...entry } }
  }
  switch (kind) {
    case 'plain':
    case 'owned':
      return { satoshis: 1, script: lock, ...owner }
    case 'inscribed':
    case 'owned inscribed':
      return inscribed(1, key === 0 ? 'text/css' : 'text/plain')
    case 'inscribed in parts': {
      const [first, second] = [content.body.subarray(0, 4), content.body.subarray(4)]
      const script = inscriptionScript({ ...content, body: first, lock })
      const parts = [script.subarray(0, -1), encodePush(second), script.subarray(-1)]
      return { satoshis: 1, script: concatBytes(...parts), content }
    }
    case 'inscribed with MAP': {
      const script = inscriptionScript({ ...content, lock, suffix: mapTail({ [entry.key]: entry.value }) })
      return { satoshis: 1, script, content, map: { command: 'SET', ...entry } }
    }
    case 'child':
      return inscribed(1, 'text/plain', parents[(key * 5 + text) % parents.length] ?? PARENT)
    case 'chunk':
      return inscribed(1, CHUNK_TYPE)
    case 'set':
      return mapped('SET')
    case 'add':
      return mapped('ADD')
    case 'remove':
      return mapped('REMOVE')
    case 'larger':
      return { satoshis: 5, script: lock }
    case 'larger inscribed':
      return inscribed(4)
    case 'empty':
      return { satoshis: 0, script: lock }
  }
}

/** The kind of an output that has content, whatever else was wanted. */
export function inscribing<Kind extends string>(kind: Kind): Kind | 'inscribed' {
  return kind === 'plain' || kind === 'larger' || kind === 'empty' ? 'inscribed' : kind
}

export function outputOf({ satoshis, script }: Said): { satoshis: number; lockingScript: Uint8Array } {
  return { satoshis, lockingScript: script }
}

export type MapAnswer = Record<string, string | string[]>

/** The parent and the MAP that outputs say together, one after another. */
export function saidAlong(run: readonly (Pick<Said, 'parent' | 'map'> | undefined)[]): {
  parent: string | undefined
  map: MapAnswer
} {
  const map: MapAnswer = {}
  let parent: string | undefined
  for (const said of run) {
    parent = said?.parent ?? parent
    if (said?.map === undefined) continue
    const { command, key, value } = said.map
    const before = map[key] ?? []
    if (command === 'SET') map[key] = value
    else if (command === 'REMOVE') delete map[key]
    else map[key] = [...new Set([...(typeof before === 'string' ? [before] : before), value])]
  }
  return { parent, map }
}
