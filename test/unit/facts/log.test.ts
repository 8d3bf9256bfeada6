import fc from 'fast-check'
import {
  FACT,
  NO_NOTES_BYTES,
  proofFact,
  readProofFact,
  readTransactionFact,
  transactionFact,
} from '../../../backend/src/facts/log.js'
import { readRegisterFact, register, registerFact, SETTINGS } from '../../../backend/src/facts/registers.js'
import { chunkGroups, layOut } from '../../../backend/src/facts/shared-log.js'
import { toHex } from '../../../backend/src/protocol/bytes.js'

const hash = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(toHex)
const vout = fc.integer({ min: 0, max: 0xffffffff })
const bytes = fc.uint8Array({ maxLength: 300 })

test('a transaction is read as it was written, and a position in it is one in the fact', () => {
  const others = fc.array(fc.record({ topic: fc.string(), vout }))
  fc.assert(
    fc.property(hash, bytes, fc.array(vout), others, (txid, raw, refused, others) => {
      const fact = transactionFact({ txid, raw }, { refused, others })
      expect(readTransactionFact(fact)).toEqual({ txid, raw, notes: { refused, others } })
      expect(fact.kind).toBe(FACT.transaction)
      expect(toHex(fact.key)).toBe(txid)
      expect(fact.body.subarray(0, raw.length)).toEqual(raw)
    }),
  )
})

test('a transaction without notes is as long as its bytes and a length', () => {
  const raw = Uint8Array.of(1, 2, 3)
  expect(transactionFact({ txid: '00'.repeat(32), raw }).body.length).toBe(3 + NO_NOTES_BYTES)
})

test('a statement inserts no more of a long body than a database takes', () => {
  const long = { kind: FACT.transaction, key: new Uint8Array(32), body: new Uint8Array(9 * 1024 * 1024) }
  const groups = [...chunkGroups(layOut({ id: new Uint8Array(8), rows: [long] }))]
  const sizes = groups.map((chunks) => chunks.reduce((sum, { bytes }) => sum + bytes.length, 0))
  expect(Math.max(...sizes)).toBeLessThan(5 * 1024 * 1024)
  expect(sizes.reduce((sum, size) => sum + size)).toBe(long.body.length)
})

test('of many short rows, a statement holds no more than a document of MongoDB', () => {
  const rows = Array.from({ length: 20_000 }, () => ({
    kind: FACT.body,
    key: new Uint8Array(32),
    body: new Uint8Array(900),
  }))
  const inline = layOut({ id: new Uint8Array(8), rows }).filter(({ chunks }) => chunks === undefined)
  expect(inline.length * 900).toBeLessThan(5 * 1024 * 1024)
})

test('a proof is read as it was written', () => {
  fc.assert(
    fc.property(hash, vout, hash, bytes, (txid, height, root, merklePath) => {
      expect(readProofFact(proofFact(txid, { height, root, merklePath }))).toEqual({
        txid,
        proof: { height, root, merklePath },
      })
    }),
  )
})

test('a register is read as it was written', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme' }),
      fc.integer({ min: 1, max: 2 ** 24 - 1 }),
      fc.string(),
      (subject, n, value) => {
        expect(readRegisterFact(registerFact(subject, n, value))).toEqual({ subject, n, value })
      },
    ),
  )
  const [txid, root] = ['ab'.repeat(32), 'cd'.repeat(32)]
  expect([
    register.block({ kind: 'outpoint', value: `${txid}_0` }),
    register.sighting(txid),
    register.verdict({ height: 7, root }),
    register.setting('genesis'),
  ]).toEqual([`block outpoint ${txid}_0`, `sighting ${txid}`, `verdict 7 ${root}`, 'setting genesis'])
})

test('only what derivation depends on is a setting in the log', () => {
  expect(['genesis', 'PROFILE', 'tracker', 'base', 'anchor'].every((name) => SETTINGS.has(name))).toBe(true)
  expect(['checked_tip', 'space probed', 'deployed-here'].some((name) => SETTINGS.has(name))).toBe(false)
})
