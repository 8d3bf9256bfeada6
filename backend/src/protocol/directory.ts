import { readStrictUtf8 } from './bytes.js'

/** A body that is no map of a directory. */
export class DirectoryError extends Error {
  readonly code = 'BAD_DIRECTORY'
  override readonly name = 'DirectoryError'
}

/**
 * Reads the map of a directory (service.md 2.4): from names, each a single segment of a path, to pointers as they are
 * written, which nothing here checks. Of a name that stands there several times the last counts, as in JSON.parse.
 *
 * @throws DirectoryError (`BAD_DIRECTORY`) where the body is not valid UTF-8, not a JSON object, has a value that is no
 * string or a name with `/`.
 */
export function readDirectory(body: Uint8Array): Map<string, string> {
  const text = readStrictUtf8(body)
  if (text === undefined) throw new DirectoryError('it is not UTF-8')
  const value = parseJson(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new DirectoryError('it is not a JSON object')
  }
  // A Map, not the object itself: strangers name the keys, and an object answers to names that nobody put in it.
  const map = new Map<string, string>()
  for (const [name, pointer] of Object.entries(value)) {
    if (name.includes('/')) throw new DirectoryError('a name in it has a slash')
    if (typeof pointer !== 'string') throw new DirectoryError('a value in it is not a string')
    map.set(name, pointer)
  }
  return map
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new DirectoryError('it is not JSON', { cause })
  }
}
