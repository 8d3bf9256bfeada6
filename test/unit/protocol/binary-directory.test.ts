import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import {
  type BinaryEntry,
  encodeBinaryDirectory,
  readBinaryDirectory,
} from '../../../backend/src/protocol/binary-directory.js'
import { fromHex, toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import { DirectoryError, directoryEntries, Link } from '../../../backend/src/protocol/directory.js'
import { formatOutpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { bytes, mutated, outpoint } from '../../support/protocol/arbitraries.js'

interface Vectors {
  valid: { name: string; body: string; entries: { name: string; flags: number; target: string }[] }[]
  invalid: { name: string; body: string; offset: number; message: string }[]
}
const file = join(import.meta.dirname, '../../vectors/binary-directories.json')
const { valid, invalid } = JSON.parse(readFileSync(file, 'utf8')) as Vectors

const targetOf = (text: string): BinaryEntry['target'] =>
  text.startsWith('_') ? Number(text.slice(1)) : parseOutpoint(text)
const textOf = (target: BinaryEntry['target']): string =>
  typeof target === 'number' ? `_${target}` : formatOutpoint(target)

test.each(valid)('$name is read, and written so', ({ body, entries }) => {
  const read = [...readBinaryDirectory(fromHex(body))]
  expect(read.map(({ target, ...each }) => ({ ...each, target: textOf(target) }))).toEqual(entries)
  const written = entries.toReversed().map((each) => ({ ...each, target: targetOf(each.target) }))
  expect(toHex(encodeBinaryDirectory(written))).toBe(body)
  expect([...directoryEntries(fromHex(body), 'ordfs/dir')]).toEqual(
    entries.map(({ name, flags, target }) => [name, (flags & 4) === 0 ? target : new Link(target)]),
  )
})

test('the high byte of the count comes first', () => {
  const many = Array.from({ length: 258 }, (_, at) => ({ name: `${1000 + at}`, flags: 0, target: 0 }))
  const body = encodeBinaryDirectory(many)
  expect(toHex(body.subarray(0, 3))).toBe('010102')
  expect([...readBinaryDirectory(body)]).toEqual(many)
})

test.each(invalid)('$name is refused, with the offset', (each) => {
  const { offset, message } = each
  const error = expect.objectContaining({
    ...{
      name: 'DirectoryError',
      code: 'BAD_DIRECTORY',
      message: `${message}, at byte ${offset}`,
      data: { offset },
    },
  })
  expect(() => [...readBinaryDirectory(fromHex(each.body))]).toThrow(error)
})

const name = fc
  .oneof(fc.string({ unit: 'binary' }), fc.constantFrom('.', '..', 'index.html', '__proto__', '0', '00'))
  .map((any) => any.replaceAll(/[/\0]/g, ''))
  .filter((any) => any !== '' && utf8(any).length < 256)
const entry = fc.record({ name, flags: fc.nat(7), target: fc.oneof(fc.nat(255), outpoint) })
const entries = fc.uniqueArray(entry, { selector: ({ name }) => name })

test('what was written is what is read, from a view too', () => {
  fc.assert(
    fc.property(entries, (all) => {
      const view = Uint8Array.of(255, ...encodeBinaryDirectory(all), 255).subarray(1, -1)
      const read = new Map([...readBinaryDirectory(view)].map((entry) => [entry.name, entry]))
      expect(read).toEqual(new Map(all.map((entry) => [entry.name, entry])))
    }),
  )
})

test('any bytes are refused within their length, or are the only way to write what they say', () => {
  fc.assert(
    fc.property(fc.oneof(bytes(), mutated(entries.map(encodeBinaryDirectory))), (any) => {
      try {
        expect(encodeBinaryDirectory(readBinaryDirectory(any))).toEqual(any)
      } catch (error) {
        if (!(error instanceof DirectoryError)) throw error
        const offset = error.data?.offset as number
        expect(offset).toBeGreaterThanOrEqual(0)
        expect(offset).toBeLessThanOrEqual(any.length)
      }
    }),
    { numRuns: 500 },
  )
})
