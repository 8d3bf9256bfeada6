import { createHash } from 'node:crypto'
import { Sql } from '../../backend/src/facts/connection.js'
import { type Fact, type NewFact, proofFact, transactionFact } from '../../backend/src/facts/log.js'
import { register, registerFact } from '../../backend/src/facts/registers.js'
import { nativeHash256 } from '../../backend/src/graph/native-hash.js'
import { admissionRules } from '../../backend/src/graph/topic-rules.js'
import { Index } from '../../backend/src/index/apply.js'
import { canonicalRows } from '../../backend/src/index/canonical.js'
import { headersFact } from '../../backend/src/index/headers.js'
import type { ProofTracker } from '../../backend/src/index/transactions.js'
import { encodeHeader } from '../../backend/src/protocol/block-header.js'
import { joinBytes, reversed, toHex } from '../../backend/src/protocol/bytes.js'
import type { Outpoint } from '../../backend/src/protocol/outpoint.js'
import { IS_NIGHTLY } from '../support/nightly.js'
import {
  FakeChain,
  type FakeCoin,
  type FakeNode,
  type FakeOutput,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../support/protocol/fake-chain.js'
import { Random } from '../support/random.js'

/*
 * The index is a function of the set of facts: random histories give the same rows in whatever order and in whatever parts they are
 * applied. This compares the index with itself; whether the rows are right, `random.test.ts` asks the model.
 */

/** By day, twice as many as find the faults that this has to find (`faults.ts`). */
const SEEDS = Number(process.env.ANY_ORDER_SEEDS ?? (IS_NIGHTLY ? 200 : 16))
const FIRST_SEED = Number(process.env.ANY_ORDER_FIRST_SEED ?? 1)
const FACTS = 120
/** As much work for each header as there can be little. */
const EASY = 0x207fffff
/** How many rows of a difference are shown. */
const SHOWN = 3
const TRACKERS: ProofTracker[] = ['tracker', 'headers', 'scripts-only']

/** Choices that look like chance. */
class Choices extends Random {
  chance(of: number): boolean {
    return this.next() < of
  }

  one<Value>(values: readonly Value[]): Value {
    const value = this.pick(values)
    if (value === undefined) throw new Error('there is nothing to choose from')
    return value
  }

  shuffled<Value>(values: readonly Value[]): Value[] {
    const list = [...values]
    for (let at = list.length - 1; at > 0; at--) {
      const other = this.below(at + 1)
      const [one, two] = [list[at], list[other]]
      if (one !== undefined && two !== undefined) [list[at], list[other]] = [two, one]
    }
    return list
  }
}

interface History {
  chain: FakeChain
  facts: Fact[]
}

/**
 * Facts as they came: mints and double mints of one node, inscriptions, moves with and without MAP, content and parents, double
 * spends, coins that are merged, burnt, or of unknown value, proofs of several blocks, headers that fork, verdicts, sightings and blocks that change back
 * and forth, refusals by the policy. Some transactions nobody has.
 */
class Historian {
  private readonly chain = new FakeChain({ codeSize: 64, difficulty: 1 })
  private readonly facts: NewFact[] = []
  private readonly transactions: FakeTransaction[] = []
  private readonly coins: { transaction: FakeTransaction; vout: number }[] = []
  private readonly nodes: { node: FakeNode; domain: string }[] = []
  private readonly headers = [{ height: 99, hash: 'ee'.repeat(32) }]
  private readonly registers = new Map<string, { n: number; value: boolean }>()

  /** How many of the coins that are spent may be spent once more, how much of MAP is long, how many transactions nobody
   * has, of how many coins one is spent, and how many transactions are rejected. */
  private readonly shape: { doubles: number; long: number; missing: number; last: number; rejected: number }

  constructor(
    private readonly seed: number,
    private readonly random: Choices,
  ) {
    this.shape = {
      doubles: random.one([0.05, 0.2, 0.6]),
      long: random.one([0.1, 0.8]),
      missing: random.one([0, 0.03, 0.08]),
      last: random.one([1, 3, 8]),
      rejected: random.one([0.1, 0.5]),
    }
    this.nodes.push({ node: this.chain.node(''), domain: '' })
    this.tell(this.chain.genesis, { covenant: 1 })
    this.mine(25)
  }

  history(size: number): History {
    while (this.facts.length < size) this.happen()
    const known = new Set<string>()
    const distinct = this.facts.filter(({ kind, key }) => {
      const text = `${kind} ${Buffer.from(key).toString('hex')}`
      return known.size < known.add(text).size
    })
    return { chain: this.chain, facts: distinct.map((fact, at) => ({ ...fact, seq: at + 1, at: 0 })) }
  }

  private happen(): void {
    const { random } = this
    const chance = random.next()
    if (chance < 0.2) this.mint()
    else if (chance < 0.24)
      this.tell(this.chain.spend({ inputs: [], outputs: this.outputs(4, () => this.plain()) }))
    else if (chance < 0.74) this.spend()
    else if (chance < 0.84) this.prove(random.one(this.transactions))
    else if (chance < 0.87) this.judgeBlock()
    else if (chance < 0.9) this.mine(1 + random.below(5))
    else if (chance < 0.94) this.sight()
    else this.block()
  }

  private mint(): void {
    const { random, chain, nodes } = this
    const parent = random.one(nodes)
    const { node, domain } = parent
    if (!random.chance(this.shape.doubles)) nodes.splice(nodes.indexOf(parent), 1)
    const character = random.one(['a', 'b', 'c', 'd'])
    const coin = random.chance(0.5) && this.coins.length > 0 ? random.one(this.coins) : undefined
    try {
      const minted = chain.mint(domain + character, {
        from: node,
        ownerLock: this.lock(),
        nodeInputPosition: random.below(2),
        ...(coin && { funding: [coin] }),
      })
      for (const [vout, own] of [domain, domain + character].entries()) {
        const { satoshis, lockingScript } = minted.transaction.outputs[vout] as FakeOutput
        this.nodes.push({
          node: { satoshis, lockingScript, outpoint: { txid: minted.txid, vout } },
          domain: own,
        })
      }
      this.tell(minted, { covenant: random.chance(0.1) ? 0 : 2 })
    } catch (error) {
      // That character was claimed from the node before.
      if (!/claimed/.test(String(error))) throw error
    }
  }

  private spend(): void {
    const { random, coins, chain } = this
    const count = random.chance(0.7) ? 1 : 1 + random.below(3)
    const recent = () =>
      random.chance(0.6)
        ? coins[coins.length - 1 - random.below(Math.min(this.shape.last, coins.length))]
        : random.one(coins)
    const chosen = new Map<
      string,
      { transaction: FakeTransaction; vout: number } | ReturnType<FakeChain['madeUpCoin']>
    >()
    for (let left = random.chance(0.93) ? count : 0; left > 0 && coins.length > 0; left--) {
      const coin = recent()
      if (coin === undefined) continue
      chosen.set(coin.transaction.outpoint(coin.vout), coin)
      if (!random.chance(this.shape.doubles)) coins.splice(coins.indexOf(coin), 1)
    }
    if (random.chance(0.1)) chosen.set('unknown', chain.madeUpCoin())
    const parents = [...chosen.values()].flatMap((coin) => this.before(coin))
    const outputs = this.outputs(3, () => this.output(parents))
    this.tell(chain.spend({ inputs: [...chosen.values()], outputs }))
  }

  /** A coin, and what it was before: what a child may name as its parent. */
  private before(coin: FakeCoin): Outpoint[] {
    const { random } = this
    const outpoints: Outpoint[] = []
    let at: Outpoint | undefined = 'txid' in coin ? coin : { txid: coin.transaction.txid, vout: coin.vout }
    for (let left = 5; at !== undefined && left > 0; left--) {
      outpoints.push(at)
      const { txid } = at
      const spent: Outpoint[] = this.transactions.find((each) => each.txid === txid)?.transaction.inputs ?? []
      at = random.pick(spent)
    }
    return outpoints.map(({ txid, vout }) => ({ txid, vout }))
  }

  /** Mostly one. */
  private outputs(most: number, make: () => FakeOutput): FakeOutput[] {
    const count = this.random.chance(0.7) ? 1 : 1 + this.random.below(most)
    return Array.from({ length: count }, make)
  }

  private output(parents: Outpoint[]): FakeOutput {
    const { random } = this
    const chance = random.next()
    if (chance < 0.45) return { satoshis: 1, lockingScript: this.lock() }
    if (chance < 0.6) return { satoshis: 1, lockingScript: Buffer.concat([this.lock(), this.map()]) }
    if (chance < 0.85)
      return {
        satoshis: random.chance(0.15) ? 3 : 1,
        lockingScript: inscriptionScript({
          contentType: random.one(['text/plain', 'image/png']),
          body: Buffer.from(`body ${random.below(20)}`),
          lock: this.lock(),
          ...(random.chance(0.5) && { parent: this.parent(parents) }),
          ...(random.chance(0.5) && { suffix: this.map() }),
        }),
      }
    return this.plain()
  }

  private parent(parents: Outpoint[]): Outpoint {
    const { random } = this
    const other = { txid: random.one(this.transactions).txid, vout: 0 }
    return random.chance(0.7) ? (random.pick(parents) ?? other) : other
  }

  private plain(): FakeOutput {
    return { satoshis: 1 + this.random.below(3), lockingScript: this.lock() }
  }

  private map(): Uint8Array {
    const { random } = this
    const entries = Array.from({ length: 1 + random.below(3) }, () => [
      random.one(['a', 'b', 'c', 'd']),
      'x'.repeat(random.below(random.chance(this.shape.long) ? 1500 : 8)),
    ])
    return mapTail(Object.fromEntries(entries))
  }

  private lock(): Uint8Array {
    return p2pkh(this.random.below(5))
  }

  /** @param manner.covenant How many of its outputs nobody but a mint can spend. @param manner.missing The chance that nobody has it. */
  private tell(transaction: FakeTransaction, { covenant = 0, missing = this.shape.missing } = {}): void {
    const { random } = this
    this.transactions.push(transaction)
    const refused = random.chance(0.05) ? [0] : []
    if (!random.chance(missing)) this.facts.push(transactionFact(transaction, { refused, others: [] }))
    for (let vout = covenant; vout < transaction.transaction.outputs.length; vout++)
      this.coins.push({ transaction, vout })
    if (random.chance(0.4)) this.prove(transaction)
  }

  private prove({ txid }: FakeTransaction): void {
    this.facts.push(proofFact(txid, { ...this.someBlock(), merklePath: new Uint8Array(4) }))
  }

  private someBlock(height = 100 + this.random.below(30)): { height: number; root: string } {
    const root = createHash('sha256')
      .update(`${this.seed} ${height} ${this.random.below(2)}`)
      .digest('hex')
    return { height, root }
  }

  /** Adds headers on one of those that are there, of which the last is the likeliest. */
  private mine(count: number): void {
    const { random, headers } = this
    let { height, hash } = random.chance(0.5) ? random.one(headers) : (headers.at(-1) ?? random.one(headers))
    const first = height + 1
    const run: Uint8Array[] = []
    for (let left = count; left > 0; left--) {
      height++
      const { root } = this.someBlock(height)
      const bytes = encodeHeader({ version: 1, previous: hash, root, time: run.length, bits: EASY, nonce: 0 })
      hash = toHex(reversed(nativeHash256(bytes)))
      run.push(bytes)
      headers.push({ height, hash })
    }
    this.facts.push(headersFact({ height: first, headers: joinBytes(run) }))
  }

  private judgeBlock(): void {
    this.change(register.verdict(this.someBlock()), (value) => !value)
  }

  private sight(): void {
    const { txid } = this.random.one(this.transactions)
    this.change(
      register.sighting(txid),
      (value) => (value ? 'rejected' : 'seen'),
      this.random.chance(this.shape.rejected),
    )
  }

  private block(): void {
    const transaction = this.random.one(this.transactions)
    const vout = this.random.below(Math.min(3, transaction.transaction.outputs.length))
    const subject = register.block({ kind: 'outpoint', value: transaction.outpoint(vout) })
    this.change(subject, (value) => ({ blocked: !value, reason: 'a test', since: 1 }))
  }

  private change(
    subject: string,
    next: (before: boolean) => Parameters<typeof registerFact>[2],
    first = false,
  ): void {
    const { n, value } = this.registers.get(subject) ?? { n: 0, value: first }
    this.registers.set(subject, { n: n + 1, value: !value })
    this.facts.push(registerFact(subject, n + 1, next(value)))
  }
}

/** A way to apply the facts of a history. */
interface Way {
  parts: Fact[][]
  /** Facts that are applied before each part, and rolled back. */
  trial?: () => Fact[]
  /** Whether each part finds an index that was just opened. */
  restarts?: boolean
}

/** Applies facts in some way. @returns The rows, and the scores, which follow the order. */
function apply({ chain, facts }: History, tracker: ProofTracker, { parts, trial, restarts }: Way) {
  const sql = new Sql(':memory:')
  const bodies = new Map(facts.map(({ key, body }) => [Buffer.from(key).toString('hex'), body]))
  const places = new Map(facts.map(({ key, seq }) => [seq, key]))
  const source = {
    transaction: (txid: Uint8Array) => bodies.get(Buffer.from(txid).toString('hex')),
    proofKey: (seq: number) => places.get(seq) ?? new Uint8Array(),
  }
  const rules = admissionRules({ deployment: chain.deployment })
  let index = new Index(sql, source, { rules, tracker })
  const applied = new Set<Fact>()
  for (const part of parts) {
    if (restarts) index = new Index(sql, source, { rules, tracker })
    sql.exec('begin')
    if (trial !== undefined) {
      const mark = index.mark()
      sql.exec('savepoint trial')
      index.apply(trial().filter((fact) => !applied.has(fact)))
      sql.exec('rollback to trial')
      index.restore(mark)
    }
    index.apply(part)
    index.flush()
    sql.exec('commit')
    for (const fact of part) applied.add(fact)
  }
  const rows = canonicalRows(sql)
  const scores = sql.all(
    'select hex(t.txid) as txid, a.vout, a.topic, a.score from admission a join tx t on t.id = a.tid order by a.topic, a.score',
  )
  sql.close()
  return { rows, scores: scores.map((row) => JSON.stringify(row)) }
}

function inParts(facts: Fact[], random: Choices): Fact[][] {
  const parts: Fact[][] = []
  for (let at = 0; at < facts.length; ) {
    const length = 1 + random.below(6)
    parts.push(facts.slice(at, at + length))
    at += length
  }
  return parts
}

const seeds = Array.from({ length: SEEDS }, (_, at) => FIRST_SEED + at)

test.each(seeds)('history %i gives the same rows in any order', (seed) => {
  const random = new Choices(seed)
  const history = new Historian(seed, random).history(FACTS)
  const { facts } = history
  const tracker = TRACKERS[seed % TRACKERS.length] ?? 'tracker'
  const expected = apply(history, tracker, { parts: facts.map((fact) => [fact]) })
  const inOrder: Record<string, Way> = {
    'all at once': { parts: [facts] },
    'after trials': { parts: inParts(facts, random), trial: () => random.shuffled(facts).slice(0, 10) },
  }
  const inOtherOrders: Record<string, Way> = {
    backwards: { parts: facts.toReversed().map((fact) => [fact]) },
    'in another order': { parts: inParts(random.shuffled(facts), random), restarts: true },
    'in yet another': { parts: inParts(random.shuffled(facts), random) },
  }
  for (const [way, each] of Object.entries({ ...inOrder, ...inOtherOrders })) {
    const { rows, scores } = apply(history, tracker, each)
    expect({ way, ...differencesOf(rows, expected.rows) }).toEqual({ way })
    if (way in inOrder) expect({ way, scores }).toEqual({ way, scores: expected.scores })
  }
})

/** By table, the first rows that are missing and that are too many. */
function differencesOf(
  rows: Record<string, string[]>,
  expected: Record<string, string[]>,
): Record<string, { missing: string[]; extra: string[] }> {
  const differences: Record<string, { missing: string[]; extra: string[] }> = {}
  for (const [table, wanted] of Object.entries(expected)) {
    const found = rows[table] ?? []
    const missing = wanted.filter((row) => !found.includes(row))
    const extra = found.filter((row) => !wanted.includes(row))
    if (missing.length + extra.length > 0)
      differences[table] = { missing: missing.slice(0, SHOWN), extra: extra.slice(0, SHOWN) }
  }
  return differences
}
