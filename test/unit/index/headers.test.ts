import fc from 'fast-check'
import { Sql } from '../../../backend/src/facts/connection.js'
import { FACT, type Fact } from '../../../backend/src/facts/log.js'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import {
  applyAnchor,
  applyHeaders,
  headerRange,
  headersFact,
  heightOfBlock,
  isOnBestChain,
  newHeaderFacts,
  readHeaders,
  rootAt,
} from '../../../backend/src/index/headers.js'
import { SCHEMA } from '../../../backend/src/index/schema.js'
import { encodeHeader, headerAt, headerCount, workOf } from '../../../backend/src/protocol/block-header.js'
import { fromHex, joinBytes, reversed, toHex } from '../../../backend/src/protocol/bytes.js'
import type { HeaderRange } from '../../../backend/src/protocol/header-store.js'
import { rounds } from '../../support/nightly.js'

const open = (): Sql => {
  const sql = new Sql(':memory:')
  onTestFinished(() => sql.close())
  sql.exec(SCHEMA)
  return sql
}

const EASY = 0x207fffff
/** A header with these bits has twice the work. */
const HARD = 0x203fffff

interface Made {
  height: number
  bytes: Uint8Array
  hash: string
  root: string
  parent: Made | undefined
  /** From the first one on. */
  work: bigint
}

let salt = 0
function make(parent: Made | undefined, { bits = EASY, height = 0 } = {}): Made {
  const root = (++salt).toString(16).padStart(64, '0')
  const at = parent === undefined ? height : parent.height + 1
  const previous = parent?.hash ?? 'ee'.repeat(32)
  const bytes = encodeHeader({ version: 1, previous, root, time: salt, bits, nonce: 0 })
  const hash = toHex(reversed(nativeHash256(bytes)))
  return { height: at, bytes, hash, root, parent, work: (parent?.work ?? 0n) + workOf(bits) }
}

/** Headers on one, or from a height on. */
function line(from: Made | number, count: number, bits = EASY): Made[] {
  const made: Made[] = []
  for (let index = 0; index < count; index++)
    made.push(
      typeof from === 'number' && index === 0
        ? make(undefined, { bits, height: from })
        : make(made.at(-1) ?? (from as Made), { bits }),
    )
  return made
}

/** The fact of consecutive headers. */
function factOf(run: readonly Made[], seq: number): Fact {
  const headers = joinBytes(run.map(({ bytes }) => bytes))
  return { ...headersFact({ height: run[0]?.height ?? 0, headers }), seq, at: 0 }
}

function setAnchor(sql: Sql, made: Made | ''): HeaderRange[] {
  const value = made === '' ? '' : `${made.height} ${made.hash}`
  const replace = "insert or replace into register (subject, value, n) values ('setting anchor', ?, 1)"
  sql.run(replace, JSON.stringify(value))
  return applyAnchor(sql)
}

const dump = (sql: Sql): unknown => sql.all('select * from header')

/** The hashes of the best chain by height. */
function chainOf(sql: Sql): Map<number, string> {
  const range = headerRange(sql)
  if (range === undefined) return new Map()
  const headers = readHeaders(sql, { from: range.from, count: range.to - range.from + 1 })
  return new Map(
    Array.from({ length: headerCount(headers) }, (_, index) => [
      range.from + index,
      toHex(reversed(nativeHash256(headerAt(headers, index)))),
    ]),
  )
}

function expectChain(sql: Sql, chain: readonly Made[]): void {
  expect([...chainOf(sql).values()]).toEqual(chain.map(({ hash }) => hash))
  for (const { height, root, hash } of chain) {
    expect(toHex(rootAt(sql, height) ?? new Uint8Array(0))).toBe(root)
    expect(isOnBestChain(sql, { height, root: fromHex(root) })).toBe(true)
    expect(heightOfBlock(sql, reversed(fromHex(hash)))).toBe(height)
  }
  for (const height of [(chain[0]?.height ?? 1) - 1, (chain.at(-1)?.height ?? -1) + 1])
    expect(rootAt(sql, height)).toBeUndefined()
}

test('headers that continue the chain are added at both ends', () => {
  const sql = open()
  const chain = line(1000, 300)
  const part = (from: number, to: number): Made[] => chain.slice(from, to)
  expect(applyHeaders(sql, factOf(part(147, 200), 1))).toEqual([{ from: 1147, to: 1199 }])
  expect(applyHeaders(sql, factOf(part(200, 201), 2))).toEqual([{ from: 1200, to: 1200 }])
  expect(applyHeaders(sql, factOf(part(100, 147), 3))).toEqual([{ from: 1100, to: 1146 }])
  expect(applyHeaders(sql, factOf(part(201, 300), 4))).toEqual([{ from: 1201, to: 1299 }])
  expect(applyHeaders(sql, factOf(part(0, 100), 5))).toEqual([{ from: 1000, to: 1099 }])
  expectChain(sql, chain)
  expect(headerRange(sql)).toEqual({ from: 1000, to: 1299 })
  expect(readHeaders(sql, { from: 1290, count: 50 })).toEqual(
    joinBytes(part(290, 300).map(({ bytes }) => bytes)),
  )
  for (const query of [
    { from: 999, count: 10 },
    { from: 1300, count: 10 },
    { from: 1000, count: 0 },
  ])
    expect(readHeaders(sql, query)).toHaveLength(0)
})

test('long branches whose facts come in any order are linked', () => {
  const chain = line(1000, 1400)
  const branch = line(chain[699] as Made, 450, HARD)
  const runs: Made[][] = []
  for (const each of [chain, branch])
    for (let at = 0; at < each.length; at += 50) runs.push(each.slice(at, at + 50))
  const facts = runs.map((run, index) => factOf(run, index + 1))
  // Steps that share no factor with the number of facts reach each of them.
  const chains = [1, 7, 29].map((step) => {
    const sql = open()
    if (step === 29) setAnchor(sql, chain[10] as Made)
    for (let index = 0; index < facts.length; index++)
      applyHeaders(sql, facts[(index * step) % facts.length] as Fact)
    return [...chainOf(sql).values()]
  })
  const best = [...chain.slice(0, 700), ...branch].map(({ hash }) => hash)
  expect(chains).toEqual([best, best, best])
})

test('with an anchor only chains through it count, and with an empty one none', () => {
  const sql = open()
  const base = line(10, 20)
  const mine = line(base[9] as Made, 3)
  applyHeaders(sql, factOf(base, 1))
  applyHeaders(sql, factOf(mine, 2))
  expect(setAnchor(sql, mine[1] as Made)).toEqual([
    { from: 10, to: 29 },
    { from: 10, to: 22 },
  ])
  expectChain(sql, [...base.slice(0, 10), ...mine])
  // It leaves the chain below the anchor.
  applyHeaders(sql, factOf(line(mine[0] as Made, 30, HARD), 3))
  expectChain(sql, [...base.slice(0, 10), ...mine])
  expect(setAnchor(sql, '')).toEqual([{ from: 10, to: 22 }])
  expect(headerRange(sql)).toBeUndefined()
  expect(applyHeaders(sql, factOf(line(base[19] as Made, 10), 4))).toEqual([])
  expect(setAnchor(sql, base[3] as Made)).toHaveLength(1)
  expect(headerRange(sql)?.to).toBe(50)
})

test('what is not known yet becomes facts of at most 2,016 headers, from the chain on', () => {
  const chain = line(0, 5000)
  const headers = joinBytes(chain.map(({ bytes }) => bytes))
  const sql = open()
  const heights = (height: number, count: number): number[][] =>
    newHeaderFacts(sql, { height, headers: headers.subarray(height * 80, (height + count) * 80) }).map(
      ({ body }) => [Buffer.from(body).readUInt32BE(), (body.length - 4) / 80],
    )
  expect(heights(0, 5000)).toEqual([
    [0, 968],
    [968, 2016],
    [2984, 2016],
  ])
  applyHeaders(sql, factOf(chain.slice(4500, 4600), 1))
  expect(heights(4550, 100)).toEqual([[4600, 50]])
  expect(heights(0, 4500)).toEqual([
    [2484, 2016],
    [468, 2016],
    [0, 468],
  ])
  expect(heights(4510, 10)).toEqual([])
})

test('a fact with another key, or with headers that are not linked, is refused', () => {
  const sql = open()
  const chain = line(10, 3)
  const fact = factOf(chain, 1)
  expect(() => applyHeaders(sql, { ...fact, key: factOf(chain.slice(0, 2), 1).key })).toThrow('damaged')
  expect(() => applyHeaders(sql, factOf([chain[0] as Made, chain[2] as Made], 1))).toThrow('damaged')
  expect(() =>
    applyHeaders(sql, { kind: FACT.header, key: fact.key, body: fact.body.subarray(0, 4), seq: 1, at: 0 }),
  ).toThrow('damaged')
  expect(headerRange(sql)).toBeUndefined()
})

/** A tree of headers, cut into facts: `choices` says for each header which earlier one it follows, and its work. */
function forest(choices: readonly (readonly [number, boolean, boolean])[]): { all: Made[]; facts: Fact[] } {
  const all: Made[] = []
  const runs: Made[][] = []
  for (const [back, isHard, isCut] of choices) {
    const parent = all.length === 0 ? undefined : all[all.length - 1 - (back % all.length)]
    const made = make(parent, { bits: isHard ? HARD : EASY, height: 100 })
    all.push(made)
    const run = runs.at(-1)
    if (run === undefined || isCut || run.at(-1) !== parent) runs.push([made])
    else run.push(made)
  }
  return { all, facts: runs.map((run, index) => factOf(run, index + 1)) }
}

/** The best chain, as the rule says it: of the headers of most work the one whose fact came first. */
function bestOf(all: readonly Made[], facts: readonly Fact[], anchor: Made | undefined): string[] {
  const seqs = new Map<string, number>()
  for (const { body, seq } of facts)
    for (let at = 4; at < body.length; at += 80) {
      const hash = toHex(reversed(nativeHash256(body.subarray(at, at + 80))))
      seqs.set(hash, Math.min(seq, seqs.get(hash) ?? seq))
    }
  const pathOf = (made: Made): Made[] =>
    made.parent && seqs.has(made.parent.hash) ? [...pathOf(made.parent), made] : [made]
  const workAbove = (path: Made[]): bigint => (path.at(-1)?.work ?? 0n) - (path[0]?.parent?.work ?? 0n)
  const [best = []] = all
    .filter(({ hash }) => seqs.has(hash))
    .map(pathOf)
    .filter((path) => anchor === undefined || path.includes(anchor))
    .sort((one, other) => {
      const [more, less] = [workAbove(other), workAbove(one)]
      if (more !== less) return more > less ? 1 : -1
      const seqOf = (path: Made[]): number => seqs.get(path.at(-1)?.hash ?? '') ?? 0
      return seqOf(one) - seqOf(other) || ((one.at(-1)?.hash ?? '') < (other.at(-1)?.hash ?? '') ? -1 : 1)
    })
  return best.map(({ hash }) => hash)
}

test('the rows are a function of the facts, whatever their order, and the changed heights are told', () => {
  const sql = open()
  const choice = fc.tuple(
    fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(30) }),
    fc.boolean(),
    fc.boolean(),
  )
  fc.assert(
    fc.property(
      fc.array(choice, { minLength: 2, maxLength: 45 }),
      fc.infiniteStream(fc.nat()),
      fc.option(fc.nat()),
      (choices, random, anchored) => {
        const { all, facts } = forest(choices)
        // Some headers are in several facts.
        for (const made of all.slice(-3)) facts.push(factOf([made], facts.length + 1))
        const anchor = anchored === null ? undefined : all[anchored % all.length]
        let rows: unknown
        for (let round = 0; round < 4; round++) {
          sql.exec('begin')
          const order =
            round === 0
              ? [...facts]
              : facts
                  .map((fact) => [random.next().value, fact] as const)
                  .sort(([one], [other]) => one - other)
                  .map(([, fact]) => fact)
          const anchorAt = random.next().value % (order.length + 1)
          const known: Fact[] = []
          for (let at = 0; at <= order.length; at++) {
            const before = chainOf(sql)
            const changed: HeaderRange[] = []
            if (at === anchorAt && anchor !== undefined) changed.push(...setAnchor(sql, anchor))
            const fact = order[at]
            if (fact !== undefined) {
              known.push(fact)
              changed.push(...applyHeaders(sql, fact))
            }
            const after = chainOf(sql)
            expect([...after.values()]).toEqual(bestOf(all, known, at >= anchorAt ? anchor : undefined))
            const differ = [...new Set([...before.keys(), ...after.keys()])].filter(
              (height) => before.get(height) !== after.get(height),
            )
            for (const height of differ)
              expect(changed.some(({ from, to }) => from <= height && height <= to)).toBe(true)
            if (differ.length === 0) expect(changed).toEqual([])
          }
          rows ??= dump(sql)
          expect(dump(sql)).toEqual(rows)
          sql.exec('rollback')
        }
      },
    ),
    { numRuns: rounds(60, 150) },
  )
})
