import fc from 'fast-check'
import { HeaderChain } from '../../test/support/server/header-chain.js'
import { numbers } from '../forests/chain.js'
import { type Answer, type Differences, differences } from './answers.js'
import { type Deed, deed, type History, type HistoryTransaction, historyOf } from './history.js'
import { type Enclosed, OrderHost } from './host.js'
import { type Block, conflictsWithin, type Member, type OrderAnswers, OrderModel, sha256 } from './model.js'

/** How a transaction is submitted; numbers choose. */
interface Manner {
  /** With its proof, where it is mined. */
  proven: boolean
  /** What comes along that verification does not need: of each transaction that a proven one names, with this chance. */
  sources: number
  /** Whether the sources of sources come, too. */
  deep: boolean
  /** Sources that come along bring their proofs. */
  sourceProofs: boolean
  /** What an unproven one is built on comes without proofs, mined or not. */
  lag: boolean
  topics: readonly string[]
  choice: number
}

type Happening =
  | ({ kind: 'submit'; which: 'next' | 'new' | 'any'; at: number } & Manner)
  | { kind: 'ingest'; at: number }
  | { kind: 'block'; what: Block['kind']; at: number }
  | { kind: 'unblock'; at: number }
  | { kind: 'reorg'; depth: number; choice: number }
  | ({ kind: 'kill'; at: number } & Manner)
  | { kind: 'restart' | 'read' }

const TOPICS = ['tm_names', 'tm_ordinals']
const choice = fc.nat(0xffff)

/** In one run of so many, each route is asked about each output at the end; in the others, those that tell of many at once. */
const EVERYTHING_EVERY = 3

/** How often something is submitted again where it cannot be decided yet. */
const MOST_TRIES = 5

/** As whatever can be valid is. */
const CERTAIN: Manner = {
  proven: true,
  sources: 0,
  deep: false,
  sourceProofs: false,
  lag: false,
  topics: TOPICS,
  choice: 0,
}

const manner = fc.record({
  proven: fc.constantFrom(true, true, true, true, true, false),
  sources: fc.constantFrom(0, 0, 0, 0.5, 1),
  deep: fc.constantFrom(false, false, true),
  sourceProofs: fc.boolean(),
  lag: fc.constantFrom(false, false, true),
  topics: fc.constantFrom(TOPICS, TOPICS, ['tm_names'], ['tm_ordinals']),
  choice,
})

const happening: fc.Arbitrary<Happening> = fc.oneof(
  {
    weight: 16,
    arbitrary: fc
      .record({ which: fc.constantFrom<'next' | 'new' | 'any'>('next', 'new', 'new', 'any'), at: fc.nat(30) })
      .chain((some) => manner.map((how): Happening => ({ kind: 'submit', ...some, ...how }))),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('ingest' as const), at: fc.nat(30) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('block' as const),
      what: fc.constantFrom<Block['kind']>('outpoint', 'sha256', 'name'),
      at: fc.nat(60),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('unblock' as const), at: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reorg' as const), depth: fc.nat(8), choice }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
  {
    weight: 1,
    arbitrary: fc.nat(30).chain((at) => manner.map((how): Happening => ({ kind: 'kill', at, ...how }))),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('read' as const) }) },
)

/** What happens in a run: a history, and how a host comes to know it. */
export interface Plan {
  deeds: Deed[]
  /** Which transactions are mined. */
  mined: number
  happenings: Happening[]
  /** Decides in what order the rest is submitted, and how. */
  rest: number
  /** How many transactions one write looks at again; undefined for as many as by default. */
  reevaluations: number | undefined
}

export const plan: fc.Arbitrary<Plan> = fc.record({
  deeds: fc.array(deed, { minLength: 8, maxLength: 20, size: 'max' }),
  mined: choice,
  happenings: fc.array(happening, { minLength: 2, maxLength: 28, size: 'max' }),
  rest: choice,
  reevaluations: fc.constantFrom(undefined, 1, 2),
})

/** How a run ends that finds a host to be wrong: what happened, and each answer that is another. */
export class OrderViolation extends Error {
  override readonly name = 'OrderViolation'

  constructor(
    readonly at: string,
    readonly found: Differences,
    readonly log: string[],
  ) {
    const shown = Object.entries(found).map(
      ([asked, { got, expected }]) =>
        `  ${asked}\n    got      ${JSON.stringify(got)}\n    expected ${JSON.stringify(expected)}`,
    )
    super(`${at}: ${shown.length} answers are wrong\n${shown.slice(0, 12).join('\n')}\n\n${log.join('\n')}\n`)
  }
}

/** A history that is submitted to a host, beside the model of what it should answer. */
export class OrderRun {
  /** How often each thing has happened. */
  readonly happened: Record<string, number> = {}
  readonly history: History
  private readonly model: OrderModel
  private readonly headers = new HeaderChain()
  /** The heights of the blocks that hold transactions now. */
  private mined = new Map<string, number>()
  private readonly submitted = new Set<string>()
  private readonly log: string[] = []
  private readonly names = new Map<string, string>()

  private constructor(
    private readonly plan: Plan,
    private host: OrderHost | undefined,
  ) {
    this.history = historyOf(plan.deeds)
    this.model = new OrderModel(this.history)
    for (const [at, { txid }] of this.history.transactions.entries()) this.names.set(txid, `t${at}`)
    this.mine(this.history.transactions, { chance: numbers(plan.mined), onto: this.headers.branch })
    for (const each of this.history.transactions) this.log.push(this.described(each))
  }

  /**
   * Does what is planned; then submits whatever was not submitted, reads everything, rebuilds the index, and reads again.
   *
   * @param options.main The compiled command, to run the server as a process that can be killed.
   * @throws OrderViolation where something is not as the model says.
   */
  static async of(plan: Plan, options: { main?: string | undefined } = {}): Promise<OrderRun> {
    const run = new OrderRun(plan, undefined)
    const { history, headers } = run
    const { reevaluations } = plan
    run.host = await OrderHost.start({ ...{ history, headers, reevaluations }, ...options })
    try {
      for (const each of plan.happenings) {
        await run.happen(each)
        await run.running.untilIdle()
        if (run.mayTie && each.kind === 'reorg') return run
      }
      await run.submitRest()
      await run.read('when everything was submitted', { everything: plan.rest % EVERYTHING_EVERY === 0 })
      await run.running.reindex()
      await run.read('after reindex', { everything: false })
    } finally {
      await run.running.close()
    }
    return run
  }

  /**
   * Whether one submission stored ancestors that conflict. Once a reorganisation leaves both unproven, the first one counts,
   * and the model knows only in which submission a transaction came, not at which place of its BEEF.
   */
  private mayTie = false

  private get running(): OrderHost {
    if (this.host === undefined) throw new Error('no host runs')
    return this.host
  }

  private count(what: string): void {
    this.happened[what] = (this.happened[what] ?? 0) + 1
  }

  private async happen(event: Happening): Promise<void> {
    switch (event.kind) {
      case 'submit': {
        const chosen = this.chosen(event)
        if (chosen !== undefined) await this.submit(chosen, event)
        return
      }
      case 'ingest':
        return await this.ingest(event.at)
      case 'block':
        return await this.block(event)
      case 'unblock': {
        const block = this.model.blocked[event.at]
        if (block === undefined) return
        this.note('unblock', `unblock ${block.kind} ${block.value}`)
        this.expectStatus('unblock', await this.running.unblock(block))
        this.model.unblock(block)
        return
      }
      case 'reorg':
        return await this.reorg(event)
      case 'read':
        return await this.read('in between', { everything: false })
      case 'kill':
        return await this.killWhile(event)
      case 'restart':
        this.note('restart', 'restart')
        await this.running.restart()
    }
  }

  /** Ends the host while a submission is under way, so that nobody knows whether it was taken; and sends it again. */
  private async killWhile(event: Extract<Happening, { kind: 'kill' }>): Promise<void> {
    const transaction = this.chosen({ which: 'any', at: event.at })
    const members = transaction && this.membersOf(transaction, event)
    if (transaction === undefined || members === undefined) return
    // Of one that loses, nobody knows then whether what it is built on was kept.
    const isLost = this.model.submit(this.recordsOf(members)).kind === 'lost'
    if (isLost && this.plan.reevaluations !== undefined) return await this.submit(transaction, event)
    this.note('kill', `kill while ${this.named(transaction)} is submitted`)
    const answered = this.running.submit(members, event.topics).catch(() => undefined)
    await this.running.kill()
    await answered
    await this.running.untilIdle()
    await this.submit(transaction, event)
  }

  private chosen({
    which,
    at,
  }: Pick<Extract<Happening, { kind: 'submit' }>, 'which' | 'at'>): HistoryTransaction | undefined {
    const { transactions, subjects } = this.history
    // What pays comes late more often than not, so that what it places has to wait.
    const some = (which === 'new' ? subjects : transactions)
      .filter(({ txid }) => which === 'any' || !this.submitted.has(txid))
      .filter((each) => this.membersOf(each, CERTAIN) !== undefined)
    return which === 'next' ? some[0] : some[at % Math.max(some.length, 1)]
  }

  /** Submits what was not submitted yet, in some order, as far as it can be valid. */
  private async submitRest(): Promise<void> {
    const chance = numbers(this.plan.rest)
    const left = this.history.transactions
      .filter(({ txid }) => !this.submitted.has(txid))
      .map((transaction) => ({
        transaction,
        place: chance() + (this.history.subjects.includes(transaction) ? 0 : chance()),
      }))
      .sort((a, b) => a.place - b.place)
    for (const { transaction } of left) {
      await this.submit(transaction, {
        proven: chance() < 0.85,
        sources: chance() < 0.7 ? 0 : chance(),
        deep: chance() < 0.5,
        sourceProofs: chance() < 0.5,
        lag: chance() < 0.2,
        topics: chance() < 0.6 ? TOPICS : [chance() < 0.5 ? 'tm_names' : 'tm_ordinals'],
        choice: Math.floor(chance() * 0xffff),
      })
    }
  }

  private async submit(transaction: HistoryTransaction, how: Manner, again = 0): Promise<void> {
    const members =
      this.membersOf(transaction, how) ??
      this.membersOf(transaction, { ...how, proven: CERTAIN.proven, lag: CERTAIN.lag })
    if (members === undefined) return
    this.submitted.add(transaction.txid)
    const records = this.recordsOf(members)
    const shown = members.map((each) => `${this.named(each.transaction)}${each.proven ? '*' : ''}`)
    const before = this.model.answers
    const outcome = this.model.submit(records)
    this.countLate(before)
    this.note(`submit: ${outcome.kind}`, `submit ${shown.join(' ')} to ${how.topics.join()}: ${outcome.kind}`)
    const answer = await this.running.submit(members, how.topics)
    await this.running.untilIdle()
    const asked = `POST /submit of ${this.named(transaction)}`
    const said = answer.body.toString('utf8')
    if (answer.status === 503 && this.plan.reevaluations !== undefined && again < MOST_TRIES) {
      // What a block holds is known from then on, and decides.
      this.note('submit: again', 'again, as conflicts are being decided')
      this.model.learnAncestors(records)
      this.mayTie ||= conflictsWithin(this.history, transaction.txid)
      return await this.submit(transaction, how, again + 1)
    }
    if (outcome.kind === 'lost') {
      const isUnnamed = outcome.winners.size === 0 && answer.status === 400
      if (answer.status !== 409 && !isUnnamed) this.fail(asked, { got: said, expected: 409 })
      const { txid } = answer.status === 409 ? (JSON.parse(said) as { txid: string }) : { txid: '' }
      if (outcome.winners.size > 0 && !outcome.winners.has(txid))
        this.fail(`${asked}: the winner`, { got: txid, expected: [...outcome.winners] })
      return
    }
    if (answer.status !== 200) this.fail(asked, { got: said, expected: 200 })
    const { answers } = this.model
    // For what does not count now, the answer does not say what is admitted.
    if (!answers.decision.counts.has(transaction.txid)) return
    const steak = JSON.parse(said) as Record<string, { outputsToAdmit: number[] }>
    const topics = how.topics.includes('tm_names') ? TOPICS : ['tm_ordinals']
    const got = topics.map((topic) => [topic, steak[topic]?.outputsToAdmit.toSorted((a, b) => a - b)])
    const expected = topics.map((topic) => [
      topic,
      answers.admittedOf(topic as 'tm_names' | 'tm_ordinals', transaction.txid),
    ])
    // What else it waits for may be left to the next writes; then it says so when it is sent again.
    if (JSON.stringify(got) === JSON.stringify(expected)) return
    if (this.plan.reevaluations === undefined || again > 0) this.fail(asked, { got, expected })
    await this.submit(transaction, how, 1)
  }

  /** The records in a BEEF of these. */
  private recordsOf(members: readonly Enclosed[]): Member[] {
    return members.map(({ transaction: { txid }, proven }) => {
      const height = proven ? this.mined.get(txid) : undefined
      return { txid, ...(height !== undefined && { height }) }
    })
  }

  /** Counts what was known before and is admitted only now, by what it had waited for. */
  private countLate(before: OrderAnswers): void {
    const { answers } = this.model
    const isLate = (topic: 'tm_names' | 'tm_ordinals') => (outpoint: string) =>
      answers.admitted[topic].has(outpoint) && !before.admitted[topic].has(outpoint)
    const isNew = isLate('tm_ordinals')
    for (const { txid, spends, said, outpoint } of this.history.transactions) {
      if (!before.isKnown(txid)) continue
      const outpoints = said.map((_, vout) => outpoint(vout))
      if (outpoints.some(isLate('tm_names'))) this.count('late: a name')
      if (outpoints.some(isNew))
        this.count(`late: an ordinal, by ${spends.some(isNew) ? 'its parent' : 'a value'}`)
      const hadNone = outpoints.some((each) => before.held.has(each) && before.lineage(each).length === 0)
      if (hadNone && outpoints.some((each) => answers.lineage(each).length > 0)) this.count('late: an origin')
    }
  }

  /** What the BEEF of a transaction holds, the subject last; undefined where it cannot be verified that way. */
  private membersOf(subject: HistoryTransaction, how: Manner): Enclosed[] | undefined {
    const chance = numbers(how.choice)
    const members = new Map<string, Enclosed>()
    const parentsOf = ({ spends }: HistoryTransaction): HistoryTransaction[] =>
      [...new Set(spends.map((spent) => spent.slice(0, 64)))].flatMap(
        (txid) => this.history.byTxid.get(txid) ?? [],
      )
    const isMined = ({ txid }: HistoryTransaction): boolean => this.mined.has(txid)
    const need = (transaction: HistoryTransaction, proven: boolean): boolean => {
      if (members.has(transaction.txid)) return true
      members.set(transaction.txid, { transaction, proven })
      if (proven) return true
      if (transaction.needsProof) return false
      const isLate = (parent: HistoryTransaction): boolean => how.lag && !parent.needsProof
      return parentsOf(transaction).every((parent) => need(parent, isMined(parent) && !isLate(parent)))
    }
    if (!need(subject, isMined(subject) && (how.proven || subject.needsProof))) return undefined
    const bring = (transaction: HistoryTransaction): void => {
      for (const parent of parentsOf(transaction)) {
        if (members.has(parent.txid) || chance() >= how.sources) continue
        members.set(parent.txid, { transaction: parent, proven: isMined(parent) && how.sourceProofs })
        if (how.deep) bring(parent)
      }
    }
    for (const { transaction, proven } of [...members.values()]) if (proven) bring(transaction)
    const { transactions } = this.history
    const parentsFirst = transactions.flatMap(({ txid }) => members.get(txid) ?? [])
    return [
      ...parentsFirst.filter(({ transaction }) => transaction !== subject),
      ...parentsFirst.filter(({ transaction }) => transaction === subject),
    ]
  }

  private async ingest(at: number): Promise<void> {
    const txids = [...this.mined.keys()]
    const txid = txids[at % Math.max(txids.length, 1)]
    if (txid === undefined) return
    const isKnown = this.model.isKnown(txid)
    this.note(`ingest: ${isKnown ? 'known' : 'unknown'}`, `ingest ${this.names.get(txid)}`)
    const answer = await this.running.ingest(txid)
    this.expectStatus(`ingest of ${this.names.get(txid)}`, answer, isKnown ? 200 : 404)
    const height = this.mined.get(txid)
    if (isKnown && height !== undefined) this.model.prove(txid, height)
  }

  private async block({ what, at }: Extract<Happening, { kind: 'block' }>): Promise<void> {
    const outputs = this.history.subjects.flatMap(({ said, outpoint, mint }) =>
      said.map(({ content }, vout) => ({ outpoint: outpoint(vout), content, name: mint?.name })),
    )
    const one = outputs[at % outputs.length]
    const values = {
      outpoint: one?.outpoint,
      sha256: one?.content && sha256(one.content.body),
      name: one?.name,
    }
    const value = values[what]
    if (value === undefined) return
    this.note('block', `block ${what} ${value}`)
    this.expectStatus('block', await this.running.block({ kind: what, value }))
    this.model.block({ kind: what, value })
  }

  /** The last blocks go, and others come that hold another choice of what was in them, and more. */
  private async reorg({ depth, choice }: Extract<Happening, { kind: 'reorg' }>): Promise<void> {
    const { height: tip } = this.headers.bestTip
    const base = Math.max(tip - depth - 1, this.firstHeight)
    if (base >= tip) return
    const branch = this.headers.fork(base)
    this.mined = new Map([...this.mined].filter(([, height]) => height <= base))
    this.mine(this.history.transactions, { chance: numbers(choice), onto: branch })
    while (branch.tip.height <= tip) branch.mine()
    this.headers.reorg(branch)
    const shown = [...this.mined].map(([txid, height]) => `${this.names.get(txid)}@${height}`)
    this.note('reorg', `reorg behind ${base}: ${shown.join(' ')}`)
    this.expectStatus('reorg', await this.running.sendHeaders(base))
    for (const { txid } of this.history.transactions) {
      const height = this.model.heightOf(txid)
      if (height !== undefined && height > base) this.model.disprove(txid)
    }
  }

  /** Genesis and the purses are in blocks that no reorg reaches. */
  private get firstHeight(): number {
    const { transactions, subjects } = this.history
    const first = transactions.filter(
      (each) => each.txid === this.history.genesis.txid || !subjects.includes(each),
    )
    return Math.max(...first.map(({ txid }) => this.mined.get(txid) ?? 0))
  }

  /** Mines what fits onto a branch, a block each. */
  private mine(
    transactions: readonly HistoryTransaction[],
    { chance, onto }: { chance: () => number; onto: HeaderChain['branch'] },
  ): void {
    const { byTxid, subjects, genesis } = this.history
    const spent = new Set([...this.mined.keys()].flatMap((txid) => byTxid.get(txid)?.spends ?? []))
    for (const each of transactions) {
      if (this.mined.has(each.txid)) continue
      const isFirst = each === genesis || !subjects.includes(each)
      const isBuiltOnMined = each.spends.every((one) => {
        const source = one.slice(0, 64)
        return this.mined.has(source) || !byTxid.has(source)
      })
      const isLost = each.spends.some((one) => spent.has(one))
      const isChosen = chance() < (each.needsProof ? 0.97 : 0.9)
      if (!isFirst && (!isBuiltOnMined || isLost || !isChosen)) continue
      this.mined.set(each.txid, onto.mine([each]).header.height)
      for (const one of each.spends) spent.add(one)
    }
  }

  private async read(when: string, { everything }: { everything: boolean }): Promise<void> {
    this.note('read', `read ${when}`)
    await this.running.untilIdle()
    const { headers } = this
    const tracker = {
      isRoot: (root: string, height: number) => headers.rootAt(height) === root,
      isValidRootForHeight: async (root: string, height: number) => headers.rootAt(height) === root,
      currentHeight: async () => headers.bestTip.height,
    }
    const { answers } = this.model
    const asked = { url: this.running.url, history: this.history, answers, tracker }
    const found = await differences(asked, { everything })
    if (Object.keys(found).length > 0) throw this.violation(when, found)
  }

  private expectStatus(asked: string, { status, body }: Answer, expected = 200): void {
    if (status !== expected) this.fail(asked, { got: body.toString('utf8'), expected })
  }

  private fail(asked: string, difference: Differences[string]): never {
    throw this.violation('at the last step', { [asked]: difference })
  }

  private note(what: string, line: string): void {
    this.count(what)
    this.log.push(line)
  }

  /** With the short names of transactions, so that it can be read. */
  private violation(at: string, found: Differences): OrderViolation {
    const short = (text: string): string =>
      text.replace(/[0-9a-f]{64}/g, (txid) => this.names.get(txid) ?? txid)
    const shown = JSON.parse(short(JSON.stringify(found, (_, value) => value ?? 'undefined'))) as Differences
    return new OrderViolation(at, shown, this.log.map(short))
  }

  private named({ txid }: HistoryTransaction): string {
    return this.names.get(txid) ?? txid
  }

  private described(transaction: HistoryTransaction): string {
    const { spends, said, mint, needsProof } = transaction
    const inputs = spends.map(
      (spent) => `${this.names.get(spent.slice(0, 64)) ?? 'nobody'}${spent.slice(64)}`,
    )
    const outputs = said.map(({ satoshis, content, map, domain, owner }) => {
      const holds = [
        domain === undefined ? '' : ` node ${JSON.stringify(domain)}`,
        content === undefined ? '' : ` ${content.contentType}`,
        map === undefined ? '' : ` ${map.command} ${map.key}`,
        owner === undefined ? '' : ' owned',
      ]
      return `${satoshis}${holds.join('')}`
    })
    const height = this.mined.get(transaction.txid)
    const about = [
      mint === undefined ? '' : ` mints ${mint.name}`,
      needsProof ? ' needs proof' : '',
      height === undefined ? '' : ` mined at ${height}`,
    ]
    return `${this.named(transaction)}:${about.join('')} [${inputs.join(', ')}] -> [${outputs.join(', ')}]`
  }
}
