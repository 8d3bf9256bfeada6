import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** The size of one room, in files that Git knows. */
export interface Room {
  name: string
  files: number
  lines: number
  classes: number
  /** Classes that extend `Error`, directly or not. */
  errors: number
}

/** The size of the package: the rooms of the source, those of the tests, and the pages for people. */
export interface Size {
  source: Room[]
  tests: Room[]
  docs: { pages: number; words: number }
}

const SOURCE = /^(backend\/src|src|packages\/[^/]+)\//
const TESTS = /^(test|trials|bench)\//
/** Code, without vectors and pictures: nobody reads those line by line. */
const CODE = /\.(tsx?|mjs|css)$/
const PAGE = /^(docs\/|README|CHANGELOG).*\.md$/
/** A class as our formatter writes it. */
const CLASS = /^ *(?:export )?(?:default )?(?:abstract )?class (\w+)(?:<[^{]*?>)?(?: extends (\w+))?/gm

/** Counts a checkout: the files of its Git index, as they are on disk. */
export function measureSize(folder: string): Size {
  const paths = execFileSync('git', ['ls-files'], { cwd: folder, encoding: 'utf8' }).trim().split('\n')
  const read = (path: string): string => readFileSync(`${folder}/${path}`, 'utf8')
  const source = paths.filter((path) => SOURCE.test(path) && CODE.test(path))
  const parents = new Map<string, string | undefined>()
  for (const path of source)
    for (const [, name, parent] of read(path).matchAll(CLASS)) if (name) parents.set(name, parent)
  const isError = (name: string | undefined): boolean =>
    name === 'Error' || (name !== undefined && isError(parents.get(name)))
  const roomsOf = (files: string[], nameOf: (path: string) => string): Room[] => {
    const rooms = new Map<string, Room>()
    for (const path of files) {
      const name = nameOf(path)
      const room = rooms.get(name) ?? { name, files: 0, lines: 0, classes: 0, errors: 0 }
      const text = read(path)
      const classes = [...text.matchAll(CLASS)].map(([, found]) => found)
      room.files += 1
      room.lines += text.split('\n').length - 1
      room.classes += classes.length
      room.errors += classes.filter(isError).length
      rooms.set(name, room)
    }
    return [...rooms.values()].sort((one, other) => (one.name < other.name ? -1 : 1))
  }
  const pages = paths.filter((path) => PAGE.test(path))
  const words = pages.reduce((sum, path) => sum + read(path).split(/\s+/).filter(Boolean).length, 0)
  return {
    source: roomsOf(source, sourceRoom),
    tests: roomsOf(
      paths.filter((path) => TESTS.test(path) && CODE.test(path)),
      testRoom,
    ),
    docs: { pages: pages.length, words },
  }
}

/** `backend/src/index`, `src/gateway`; the server is large, so each of its folders counts as a room. */
function sourceRoom(path: string): string {
  const [first, second, third, fourth] = path.split('/')
  if (first === 'backend') return `backend/src/${third}`
  if (first === 'packages') return `packages/${second}`
  return second === 'server' && fourth !== undefined ? `src/server/${third}` : `src/${second}`
}

/** `test/unit/gateway`, `test/histories`, `bench`. */
function testRoom(path: string): string {
  const [first, second, third, fourth] = path.split('/')
  if (first !== 'test') return `${first}`
  const isSorted = second === 'unit' || second === 'system' || second === 'engines'
  return isSorted && fourth !== undefined ? `test/${second}/${third}` : `test/${second}`
}
