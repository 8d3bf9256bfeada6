import fc from 'fast-check'
import type { HostDatabase } from '../support/plugin/plugin-host.js'
import { NON_STRICT } from '../support/protocol/non-strict-mints.js'
import { Random } from '../support/random.js'
import { EngineHost } from './engine-host.js'
import { CERTAIN, choice, type Happening, happenings, type Manner, manner } from './happenings.js'
import type { Deed } from './history.js'
import { deedOf, type HistoryTransaction, type Shape, weighted } from './history.js'
import { conflictsWithin, type Member } from './model.js'
import { differences } from './questions.js'
import { Run, recordsOf } from './run.js'

// Histories in an engine have no reorganisations and no policy: nothing there follows the chain. Most of what happens is sent as
// soon as what came before is answered, and before the engine has stored it.

const SHAPE: Shape = { covenantVersion: 1, purses: new Array<number[]>(6).fill([1, 0, 4, 7]) }

const deed: fc.Arbitrary<Deed> = deedOf({
  kind: weighted({ mint: 4, move: 6, inscribe: 2 }),
  from: weighted({ free: 5, spent: 1 }),
  paysFrom: weighted({ free: 6, spent: 1 }),
  paysAt: weighted({ last: 2, first: 2, nowhere: 1 }),
  carries: fc.constantFrom(true, true, true, false),
  flow: weighted({ 'goes on': 2, free: 1 }),
  unlocking: fc.nat(6 * NON_STRICT.length),
  foreign: fc.nat(40),
  // A burn of a node; what flows into no output ends an ordinal, too.
  burns: fc.nat(5).map((chance) => chance === 0),
  coins: { minLength: 1, maxLength: 3 },
})

/** What happens in a host. `hold`: from here on the engine answers, and stores nothing; `store`: it does, all at once. */
type Step =
  | Extract<Happening, { kind: 'submit' | 'mine' | 'ingest' }>
  | { kind: 'hold' | 'store' | 'kill' | 'restart' }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 20,
    arbitrary: happenings.submit(
      weighted({ next: 4, new: 3, made: 2, any: 1, moved: 1 }),
      manner,
    ) as fc.Arbitrary<Step>,
  },
  { weight: 3, arbitrary: fc.constant<Step>({ kind: 'hold' }) },
  { weight: 2, arbitrary: fc.constant<Step>({ kind: 'store' }) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: 'kill' }) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: 'restart' }) },
  { weight: 2, arbitrary: happenings.mine(fc.constant(0)) as fc.Arbitrary<Step> },
  { weight: 2, arbitrary: happenings.ingest as fc.Arbitrary<Step> },
)

export interface EnginePlan {
  deeds: Deed[]
  mined: number
  steps: Step[]
  rest: number
}

export const enginePlan: fc.Arbitrary<EnginePlan> = fc.record({
  deeds: fc.array(deed, { minLength: 4, maxLength: 14, size: 'max' }),
  mined: choice,
  steps: fc.array(step, { minLength: 6, maxLength: 24, size: 'max' }),
  rest: choice,
})

/** A submission that the engine has answered. */
interface Answered {
  txid: string
  topics: readonly string[]
  members: Member[]
}

/** A history in an engine, beside the model: that learns what the engine has applied, whether or not it called a hook. */
export class EngineRun {
  private readonly happened: Record<string, number> = {}
  /** What is answered, and not stored yet. */
  private held: Answered[] = []
  private isHolding = false
  private readonly applied = new Set<string>()
  private readonly log: string[] = []

  private constructor(private readonly run: Run<EngineHost>) {}

  /** @returns How often each thing has happened. @throws Error with the answers that are wrong. */
  static async through(plan: EnginePlan, database: HostDatabase): Promise<Record<string, number>> {
    const { deeds, mined, steps, rest } = plan
    const run = await Run.start({
      ...{ deeds, shape: SHAPE, mined: { blocks: 4, share: 0.3, choice: mined } },
      open: ({ history, headers }) => EngineHost.start({ history, headers, database }),
    })
    try {
      const through = new EngineRun(run)
      await through.submit(run.history.genesis, CERTAIN)
      for (const each of steps) await through.do(each)
      await through.rest(rest)
      await through.expectAnswers()
      return through.happened
    } finally {
      await run.host.close()
    }
  }

  private async do(step: Step): Promise<void> {
    const { run } = this
    switch (step.kind) {
      case 'submit': {
        const chosen = run.chosen(step)
        if (chosen !== undefined) await this.submit(chosen, step)
        return
      }
      case 'hold':
        this.isHolding = true
        return run.host.hold()
      case 'store':
        return await this.store()
      case 'kill':
        this.count('kill', `${this.held.length} are answered and not stored`)
        this.held = []
        this.isHolding = false
        return await run.host.kill()
      case 'restart':
        await this.store()
        this.count('restart', '')
        return await run.host.restart()
      case 'mine':
        run.chain.mine({ blocks: step.blocks, share: 0.3, choice: step.choice })
        return this.count('mine', '')
      case 'ingest': {
        await this.store()
        const mined = run.chain.everMined({ isStale: false })
        const one = mined[step.at % Math.max(mined.length, 1)]
        if (one !== undefined) await this.ingest(one.transaction)
      }
    }
  }

  /** Lets the engine store what it has answered. */
  private async store(): Promise<void> {
    await this.run.host.untilIdle()
    this.isHolding = false
    for (const each of this.held.splice(0)) this.learn(each)
  }

  private learn({ txid, topics, members }: Answered): void {
    const { model, chain } = this.run
    const isNew = topics.filter((topic) => !this.applied.has(`${topic} ${txid}`))
    for (const topic of isNew) this.applied.add(`${topic} ${txid}`)
    if (isNew.length > 0) {
      const outcome = model.submit(members, chain.headers.bestTip.height)
      if (outcome.kind === 'lost') for (const winner of outcome.winners) outcome.waitFor(winner)
      this.count(`learnt: ${outcome.kind}`, '')
    }
    // The host passes on the proofs of what it knows.
    for (const { txid, proof } of members)
      if (proof !== undefined && model.isKnown(txid)) model.prove(txid, proof)
  }

  private async submit(transaction: HistoryTransaction, how: Manner): Promise<void> {
    const { run } = this
    const members =
      run.membersOf(transaction, how) ?? run.membersOf(transaction, { ...how, proven: true, lag: false })
    if (members === undefined) return
    // An engine takes what conflicts with its own ancestors, and our server does not.
    if (conflictsWithin(run.history, transaction.txid)) return
    // Which of two that conflict is stored first is the engine's to say.
    if (this.isHolding && this.conflicts(members.map((each) => each.transaction))) return
    const { status } = await run.host.submit(members, how.topics)
    const names = members.map((each) => `${run.named(each.transaction.txid)}${each.proof ? '*' : ''}`)
    this.count(`submit: ${status}${this.isHolding ? ', held' : ''}`, names.join(' '))
    if (status !== 200) return
    this.held.push({ txid: transaction.txid, topics: how.topics, members: recordsOf(members) })
    if (!this.isHolding) await this.store()
  }

  private conflicts(transactions: readonly HistoryTransaction[]): boolean {
    const { byTxid } = this.run.history
    const spenders = new Map<string, string>()
    const others = this.held.flatMap(({ members }) => members.flatMap(({ txid }) => byTxid.get(txid) ?? []))
    for (const { txid, spends } of others) for (const spent of spends) spenders.set(spent, txid)
    return transactions.some(({ txid, spends }) =>
      spends.some((spent) => (spenders.get(spent) ?? txid) !== txid),
    )
  }

  private async ingest(transaction: HistoryTransaction): Promise<void> {
    const { chain, host, model } = this.run
    const block = chain.blockOf(transaction.txid)
    if (block === undefined) return
    const isKnown = model.isKnown(transaction.txid)
    await host.ingest(transaction.txid, block.path(transaction.txid).toHex())
    this.count(`ingest: ${isKnown ? 'known' : 'unknown'}`, this.run.named(transaction.txid))
    if (isKnown) model.prove(transaction.txid, block.header)
  }

  /** Submits what nobody has submitted, children first as often as not, and brings each proof that there is. */
  private async rest(choice: number): Promise<void> {
    const random = new Random(choice)
    const { history } = this.run
    for (const each of history.transactions.toSorted(() => random.next() - 0.5))
      if (![...this.applied].some((applied) => applied.endsWith(each.txid)))
        await this.submit(each, { ...CERTAIN, proven: random.next() < 0.8, sources: random.next() })
    await this.store()
    for (const each of history.transactions) await this.ingest(each)
  }

  /** What the engine has not passed on comes by itself, in a while. */
  private async expectAnswers(): Promise<void> {
    const { history, model, chain, host } = this.run
    const { headers } = chain
    const tracker = {
      isRoot: (root: string, height: number) => headers.rootAt(height) === root,
      isValidRootForHeight: async (root: string, height: number) => headers.rootAt(height) === root,
      currentHeight: async () => headers.bestTip.height,
    }
    const lookup = (service: string, query: object) => host.lookup(service, query)
    const { url } = host
    const asked = { url, history, answers: model.answers, tracker, lookup }
    for (const end = Date.now() + PATIENCE; ; ) {
      const found = await differences(asked, { everything: true })
      const wrong = Object.entries(found)
      if (wrong.length === 0) return
      if (Date.now() < end) continue
      const shown = wrong.flatMap(([asked, { got, expected }]) => [
        `  ${asked}`,
        `    got      ${JSON.stringify(got)}`,
        `    expected ${JSON.stringify(expected)}`,
      ])
      const lines = [`${wrong.length} answers are wrong`, ...shown.slice(0, 36), '', ...this.log]
      const described = history.transactions.map((each) => this.run.described(each))
      const text = [...described, '', ...lines].join('\n')
      throw new Error(text.replaceAll(/[0-9a-f]{64}/g, (txid) => this.run.named(txid)))
    }
  }

  private count(what: string, about: string): void {
    this.happened[what] = (this.happened[what] ?? 0) + 1
    this.log.push(`${what} ${about}`)
  }
}

/** How long a host may take to bring what its engine has not passed on, in milliseconds. */
const PATIENCE = 20_000
