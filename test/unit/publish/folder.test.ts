import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { readUtf8, utf8 } from '../../../backend/src/protocol/bytes.js'
import { directoryEntries, type Link, pointerOf } from '../../../backend/src/protocol/directory.js'
import { readInscription } from '../../../backend/src/protocol/inscription.js'
import { readPointer } from '../../../backend/src/protocol/outpoint.js'
import { PROFILES } from '../../../backend/src/protocol/profile.js'
import {
  contentTypeOf,
  type DirectoryFormat,
  type FolderEntry,
  layOutFolder,
  type PublishOutput,
} from '../../../src/publish/index.js'
import { bytes } from '../../support/protocol/arbitraries.js'
import { p2pkh } from '../../support/protocol/fake-chain.js'

const profile = PROFILES.local
const lock = p2pkh(7)
const file = (name: string, body = name): FolderEntry => ({ name, bytes: utf8(body) })
const folder = (name: string, ...entries: FolderEntry[]): FolderEntry => ({ name, entries })
const layOut = (entries: FolderEntry[], firstOutput = 0, format: DirectoryFormat = 'json') =>
  layOutFolder({ entries, lock, profile, firstOutput, format })
const refusal = (code: string) => expect.objectContaining({ name: 'PublishError', code })
const bodyOf = (output: PublishOutput | undefined): Uint8Array =>
  readInscription(output?.lockingScript ?? new Uint8Array()).content?.body ?? new Uint8Array()

/** Files by their names with type and body in hex, and folders by theirs. */
type Tree = Map<string, Tree | string>

const shown = (contentType: string, body: Uint8Array): string =>
  `${contentType} ${Buffer.from(body).toString('hex')}`

function treeOf(entries: readonly FolderEntry[]): Tree {
  return new Map(
    entries.map((entry) => [
      entry.name,
      'entries' in entry ? treeOf(entry.entries) : shown(contentTypeOf(entry.name), entry.bytes),
    ]),
  )
}

/** The tree that the outputs of a transaction hold, found from its root as a reader would. */
function readBack(transaction: (PublishOutput | undefined)[], vout: number): Tree {
  const read = ([name, entry]: [string, string | Link]): [string, Tree | string] => {
    const pointer = readPointer(pointerOf(entry))
    const at = pointer?.kind === 'sibling' ? pointer.vout : -1
    const found = readInscription(transaction[at]?.lockingScript ?? new Uint8Array()).content
    if (['gw-fs/json', 'ordfs/dir'].includes(found?.contentType ?? ''))
      return [name, readBack(transaction, at)]
    const { contentType = '', body = new Uint8Array() } = found ?? {}
    return [name, shown(contentType, body)]
  }
  const { contentType: type = '' } =
    readInscription(transaction[vout]?.lockingScript ?? new Uint8Array()).content ?? {}
  return new Map([...directoryEntries(bodyOf(transaction[vout]), type)].map(read))
}

const name = fc
  .oneof(
    fc.string({ minLength: 1, unit: 'binary' }),
    fc.constantFrom(
      'index.html',
      '10',
      '9',
      '__proto__',
      'constructor',
      ...[' ', '...', '%2F', 'a\\b', '"', '画'],
    ),
  )
  .filter((text) => !/[/\0]/.test(text) && !['.', '..'].includes(text))
const { tree } = fc.letrec<{ tree: FolderEntry[]; entry: FolderEntry }>((tie) => ({
  tree: fc.uniqueArray(tie('entry'), { maxLength: 5, selector: (entry) => entry.name }),
  entry: fc.oneof(
    { maxDepth: 6 },
    fc.record({ name, bytes: bytes(40) }),
    fc.record({ name, entries: tie('tree') }),
  ),
}))

test('any tree reads back from its root to the same files, types and folders, wherever its outputs stand', () => {
  fc.assert(
    fc.property(tree, fc.nat(20), fc.constantFrom('json', 'dir'), (entries, firstOutput, format) => {
      const { outputs, root } = layOut(entries, firstOutput, format)
      const before = Array.from({ length: firstOutput }, () => undefined)
      expect(readBack([...before, ...outputs], root)).toEqual(treeOf(entries))
      for (const output of outputs) {
        expect(output.satoshis).toBe(1)
        expect(readInscription(output.lockingScript).owner).toBe(`${'00'.repeat(16)}00000007`)
        expect(output.tags).toEqual([`sha256:${createHash('sha256').update(bodyOf(output)).digest('hex')}`])
      }
    }),
  )
})

test('the order in which entries are given changes nothing', () => {
  const shuffled = (entries: readonly FolderEntry[]): FolderEntry[] =>
    entries
      .map((entry) => ('entries' in entry ? { ...entry, entries: shuffled(entry.entries) } : entry))
      .toReversed()
  fc.assert(
    fc.property(tree, (entries) => {
      expect(layOut(shuffled(entries))).toEqual(layOut(entries))
    }),
  )
})

test('a folder comes before what is in it, entries in the order of the bytes of their names', () => {
  const { outputs, root, hasIndex } = layOut(
    [file('é'), file('z'), folder('b', file('y'), file('x')), file('a'), file('10'), file('9'), file('B')],
    3,
  )
  expect({ root, hasIndex }).toEqual({ root: 3, hasIndex: false })
  expect(outputs.map((output) => readUtf8(bodyOf(output)))).toEqual([
    '{"10":"_4","9":"_5","B":"_6","a":"_7","b":"_8","z":"_11","é":"_12"}',
    ...['10', '9', 'B', 'a', '{"x":"_9","y":"_10"}', 'x', 'y', 'z', 'é'],
  ])
})

test('names beyond the first plane of Unicode are ordered by their bytes, not by their halves', () => {
  const [directory] = layOut([file('\u{1f333}'), file('\uffee')]).outputs
  expect(readUtf8(bodyOf(directory))).toBe('{"\uffee":"_1","\u{1f333}":"_2"}')
})

test('empty folders are directories without entries', () => {
  expect(layOut([]).outputs.map((output) => readUtf8(bodyOf(output)))).toEqual(['{}'])
  const { outputs, hasIndex } = layOut([folder('empty'), file('index.html')])
  const all = ['{"empty":"_1","index.html":"_2"}', '{}', 'index.html']
  expect(outputs.map((output) => readUtf8(bodyOf(output)))).toEqual(all)
  expect(hasIndex).toBe(true)
})

test('a directory is written with the first type of the profile, a file with its own where it has one', () => {
  const entries = [{ name: 'a.txt', bytes: utf8('a'), contentType: 'text/x-a' }]
  const { outputs } = layOutFolder({ entries, lock, profile: PROFILES.mainnet })
  const types = outputs.map(({ lockingScript }) => readInscription(lockingScript).content?.contentType)
  expect(types).toEqual(['ord-fs/json', 'text/x-a'])
})

test('a content type that is none is refused', () => {
  const entries = [{ name: 'a', bytes: utf8('a'), contentType: 'no type' }]
  expect(() => layOutFolder({ entries, lock, profile })).toThrow(refusal('BAD_CONTENT_TYPE'))
})

test.each(['', '.', '..', '/', 'a/b', '/a', '\ud800', 'a\udc00'])('an entry %j is refused', (bad) => {
  expect(() => layOut([file(bad)])).toThrow(refusal('BAD_NAME'))
  expect(() => layOut([folder('a', folder(bad))])).toThrow(refusal('BAD_NAME'))
})

test('a name twice in one folder is refused, in two folders it is not', () => {
  expect(() => layOut([file('a'), file('b'), folder('a')])).toThrow(refusal('BAD_NAME'))
  expect(() => layOut([file('a'), folder('b', file('a'))])).not.toThrow()
})

test('eight levels of folders are laid out, nine are refused', () => {
  const nested = (levels: number): FolderEntry[] =>
    levels === 1 ? [file('deep')] : [folder('in', ...nested(levels - 1))]
  expect(layOut(nested(8)).outputs).toHaveLength(9)
  expect(() => layOut(nested(9))).toThrow(refusal('NESTING_TOO_DEEP'))
})

test.each([-1, 0.5, Number.NaN, 2 ** 32, 2 ** 32 - 1])('output %d cannot be the first of two', (first) => {
  expect(() => layOut([file('a')], first)).toThrow(refusal('BAD_FIRST_OUTPUT'))
})

test('a directory is as long as gateways follow paths into, and no longer', () => {
  const named = (length: number) => bodyOf(layOut([file('a'.repeat(length), 'x')]).outputs[0])
  const longest = 1024 * 1024 - named(1).length + 1
  expect(named(longest)).toHaveLength(1024 * 1024)
  expect(() => named(longest + 1)).toThrow(refusal('DIRECTORY_TOO_LARGE'))
})

test('a lock behind which nothing would be read is refused', () => {
  expect(() => layOutFolder({ entries: [], lock: Uint8Array.of(0x6a), profile })).toThrow(refusal('BAD_LOCK'))
})

describe('as ordfs/dir', () => {
  test('subfolders are marked, and outputs are pointed at by a byte', () => {
    const [root] = layOut([file('b'), folder('a')], 3, 'dir').outputs
    expect(Buffer.from(bodyOf(root)).toString('hex')).toBe('010002' + '01016104' + '00016205')
  })

  const many = Array.from({ length: 256 }, (_, at) => file(`${at}`))
  test.each<[string, FolderEntry[], number, string]>([
    ['an output that no byte can point at', many, 0, 'DIRECTORY_TOO_LARGE'],
    ['the same behind other outputs', [file('a')], 255, 'DIRECTORY_TOO_LARGE'],
    ['a name of 256 bytes', [file('é'.repeat(128))], 0, 'BAD_NAME'],
    ['a name with a NUL', [file('a\0')], 0, 'BAD_NAME'],
  ])('%s is refused, and is none as JSON', (_, entries, first, code) => {
    expect(() => layOut(entries, first, 'dir')).toThrow(refusal(code))
    expect(() => layOut(entries, first)).not.toThrow()
  })

  test('255 files are pointed at', () => {
    expect(layOut(many.slice(1), 0, 'dir').outputs).toHaveLength(256)
  })
})
