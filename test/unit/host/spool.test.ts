import { mkdtempSync, readdirSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { vi } from 'vitest'
import { Sql } from '../../../backend/src/facts/connection.js'
import { Spool } from '../../../backend/src/host/spool.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { filesWith } from '../../support/storage/fact-store.js'

function opened(folder: string, maxBytes?: number): Spool {
  const spool = new Spool(folder, maxBytes)
  onTestFinished(() => spool.close())
  return spool
}

const LARGE = 200_000
const bytes = (count: number): Uint8Array => new Uint8Array(count)

test('what was seen and what was verified is there until it is deleted, after a restart too', () => {
  const folder = mkdtempSync(join(tmpdir(), 'spool-'))
  const spool = opened(folder)
  spool.see('a', bytes(3))
  spool.see('a', bytes(2))
  spool.verify('b', bytes(1))
  spool.verify('a', bytes(4))
  spool.evict({ txid: 'c', vout: 1 })
  spool.evict({ txid: 'c', vout: 1 })
  const again = opened(folder)
  expect(again.txids()).toEqual(['a', 'b'])
  const submission = again.get('a')
  expect([submission?.seen?.length, submission?.verified?.length]).toEqual([3, 4])
  expect(again.get('b')?.seen).toBeUndefined()
  expect(again.evictions()).toEqual([{ txid: 'c', vout: 1 }])
  again.delete('a')
  again.forgetEviction({ txid: 'c', vout: 1 })
  expect(again.get('a')).toBeUndefined()
  expect(again.txids()).toEqual(['b'])
  again.delete('b')
  again.see('b', bytes(2))
  expect(again.get('b')?.seen).toHaveLength(2)
  expect([spool.txids(), spool.evictions()]).toEqual([['b'], []])
})

test('a large BEEF is a file, which replaces a shorter one and goes with its submission', () => {
  const folder = mkdtempSync(join(tmpdir(), 'spool-'))
  const files = join(folder, 'spool')
  const spool = opened(folder, 10 * LARGE)
  for (const length of [3, LARGE, LARGE + 5, LARGE + 1, 4]) spool.see('a', bytes(length))
  for (const n of [2, 4]) spool.see(`b${n}`, bytes(n * LARGE))
  writeFileSync(join(files, 'left by a kill'), bytes(1))
  const again = opened(folder, 10 * LARGE)
  expect(again.get('a')?.seen).toHaveLength(LARGE + 5)
  expect(readdirSync(files)).toEqual(['a', 'b2', 'b4'])
  again.delete('a')
  again.flush()
  expect(readdirSync(files)).toEqual(['b2', 'b4'])
  again.see('b5', bytes(5 * LARGE))
  expect([readdirSync(files), again.txids()]).toEqual([['b5'], ['b5']])
  truncateSync(join(files, 'b5'), LARGE)
  expect(again.get('b5')).toMatchObject({ seen: undefined })
})

test('a restart leaves nothing of what was deleted, as it may be content that the operator has removed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'spool-'))
  const content = utf8('what must not be found any more '.repeat(1000))
  const spool = opened(folder)
  spool.see('a', content)
  spool.delete('a')
  spool.close()
  expect(filesWith(folder, content.subarray(0, 100))).not.toEqual([])
  opened(folder)
  expect(filesWith(folder, content.subarray(0, 100))).toEqual([])
})

test('over the limit, what nobody has verified goes first, oldest first', () => {
  const folder = mkdtempSync(join(tmpdir(), 'spool-'))
  const spool = opened(folder, 100)
  spool.verify('first', bytes(20))
  for (const txid of ['second', 'third']) spool.see(txid, bytes(40))
  spool.see('fourth', bytes(10))
  expect(spool.txids()).toEqual(['first', 'third', 'fourth'])
  const again = opened(folder, 100)
  again.see('fifth', bytes(70))
  expect(again.txids()).toEqual(['first', 'fifth'])
})

test('what fills it makes room for many at once: that reads all of it', () => {
  const spool = opened(mkdtempSync(join(tmpdir(), 'spool-')), 100)
  const asked = vi.spyOn(Sql.prototype, 'get')
  onTestFinished(() => asked.mockRestore())
  for (let n = 0; n < 200; n++) spool.see(String(n), bytes(1))
  expect(asked.mock.calls.filter(([sql]) => sql.includes('sum(')).length).toBeLessThan(10)
  expect(spool.txids().at(-1)).toBe('199')
})
