import type { History, HistoryTransaction } from '../../histories/history.js'
import { ask, type Differences, type Enclosed, type Host } from '../../histories/host.js'
import { differences } from '../../histories/questions.js'
import { Random } from '../random.js'
import type { HeaderChain } from '../server/header-chain.js'
import { answersAtRest } from './chain-model.js'
import { ChainWorld } from './chain-world.js'
import { LIVE_SHAPE, type LiveEvent, type LivePlan } from './live-plan.js'
import type { WorldSources } from './world-sources.js'

/** How long a service may take from the last change to rest, in milliseconds; a machine that is busy is slow. */
const PATIENCE = Number(process.env.PATIENCE ?? 180_000)
/** How long a kill waits for questions that do not come, in milliseconds. */
const NO_QUESTIONS = 1000
/** How long a client submits again what cannot be decided yet, in milliseconds. */
const TRIED_FOR = 2000
/** How many blocks there are when the service starts, beside those of genesis and the purses. */
const BLOCKS_BEFORE = 3
/** The most outputs that may be asked about at once. */
const A_PAGE = 100
const BOTH_TOPICS = ['tm_names', 'tm_ordinals']

/** How a run ends whose service is not equal to the model: what happened, and each answer that is another. */
export class NotAtRest extends Error {
  override readonly name = 'NotAtRest'

  constructor(
    readonly found: Differences,
    readonly log: string[],
  ) {
    const shown = Object.entries(found).map(
      ([asked, { got, expected }]) =>
        `  ${asked}\n    got      ${shortly(got)}\n    expected ${shortly(expected)}`,
    )
    super(`${shown.length} answers are wrong\n${shown.slice(0, 12).join('\n')}\n\n${log.join('\n')}\n`)
  }
}

function shortly(value: unknown): string {
  return String(JSON.stringify(value)).slice(0, 300)
}

/** A service that follows a chain while clients, miners and sources do what a plan says. */
export class LiveRun {
  /** How often each thing has happened. */
  readonly happened: Record<string, number> = {}
  private readonly told = new Set<string>()
  private readonly log: string[]
  private readonly names: ReadonlyMap<string, string>

  private constructor(
    private readonly plan: LivePlan,
    readonly world: ChainWorld,
    private readonly sources: WorldSources,
    readonly host: Host,
  ) {
    const { transactions } = world.history
    this.names = new Map(transactions.map(({ txid }, at) => [txid, `t${at}`]))
    this.log = transactions.map((each) => this.described(each))
  }

  /** @param options.open Starts the service, which is to follow these sources. */
  static async start(options: {
    plan: LivePlan
    sources(world: ChainWorld): Promise<WorldSources>
    open(of: { history: History; headers: HeaderChain; sources: WorldSources }): Promise<Host>
  }): Promise<LiveRun> {
    const { plan } = options
    const world = new ChainWorld({ deeds: plan.deeds, shape: LIVE_SHAPE })
    // The service has something to catch up with.
    world.mine({ blocks: BLOCKS_BEFORE, share: 0.15, choice: plan.rest, reorg: 0 })
    const sources = await options.sources(world)
    const host = await options.open({ history: world.history, headers: world.headers, sources })
    return new LiveRun(plan, world, sources, host)
  }

  async run(): Promise<Record<string, number>> {
    for (const each of this.plan.events) await this.happen(each)
    await this.rest(this.plan.rest, { everything: this.plan.everything })
    return this.happened
  }

  private async happen(event: LiveEvent): Promise<void> {
    switch (event.kind) {
      case 'mine': {
        const { takenBack } = this.world.mine(event)
        return this.note(takenBack > 0 ? `reorg of ${takenBack}` : 'mine', this.chain())
      }
      case 'broadcast':
        return this.broadcast(event.at)
      case 'submit proven': {
        const chosen = this.chosen(event.at, ({ txid }) => this.world.isMined(txid))
        if (chosen !== undefined) await this.submit([chosen], 'submit proven')
        return
      }
      case 'submit unproven':
        return await this.submitUnproven(event.at)
      case 'misbehave':
        this.sources.misbehave(event)
        return this.note(event.how, `source ${event.source} ${event.how}, ${event.share}`)
      case 'recover':
        this.sources.recover()
        return this.note('recover', 'sources are well again')
      case 'wait':
        this.note('wait', `wait for ${event.questions} questions`)
        return await this.sources.questions(event.questions, { atMost: NO_QUESTIONS })
      case 'kill':
      case 'restart': {
        await this.sources.questions(event.questions, { atMost: NO_QUESTIONS })
        // Without headers it does not get ready.
        if (this.plan.ownHeaders) this.sources.recover()
        this.note(event.kind, `${event.kind} after ${event.questions} questions`)
        return await (event.kind === 'kill' ? this.host.kill?.() : this.host.restart?.())
      }
      case 'rest':
        return await this.rest(event.choice, { everything: false })
    }
  }

  /** Lets everything that is open be decided, and waits until the service answers as the model does; and still does after more rounds. */
  private async rest(choice: number, { everything }: { everything: boolean }): Promise<void> {
    this.sources.recover()
    this.world.settle(choice, this.told)
    this.note('rest', `rest: ${this.chain()}`)
    const end = Date.now() + PATIENCE
    let found: Differences = {}
    for (let [seen, pause] = ['', 50]; ; pause = Math.min(2 * pause, 500)) {
      // A comparison takes a thousand times what it takes to see that nothing has changed.
      const shown = await this.shown()
      if (shown !== seen || Date.now() > end) {
        seen = shown
        found = await this.differences({ everything: false })
        if (Object.keys(found).length === 0 && everything) found = await this.differences({ everything })
        if (Object.keys(found).length === 0) break
        if (Date.now() > end) throw new NotAtRest(found, this.log)
      }
      await this.sources.questions(Number.POSITIVE_INFINITY, { atMost: pause })
    }
    await this.sources.questions(50, { atMost: NO_QUESTIONS })
    found = await this.differences({ everything: false })
    if (Object.keys(found).length > 0) throw new NotAtRest(found, [...this.log, 'it was at rest before'])
  }

  /** What the service shows of all outputs. */
  private async shown(): Promise<string> {
    const { transactions } = this.world.history
    const outpoints = transactions.flatMap(({ said, outpoint }) => said.map((_, vout) => outpoint(vout)))
    const pages: Buffer[] = []
    for (let at = 0; at < outpoints.length; at += A_PAGE) {
      const body = JSON.stringify(outpoints.slice(at, at + A_PAGE).map((each) => `${each}:-1`))
      pages.push((await ask(this.host.url, { path: '/svc/gateway/metadata', body })).body)
      const { body: held } = await ask(this.host.url, {
        path: '/svc/gateway/metadata',
        body: body.replaceAll(':-1', ''),
      })
      pages.push(held)
    }
    return Buffer.concat(pages).toString('utf8')
  }

  private async differences({ everything }: { everything: boolean }): Promise<Differences> {
    for (;;) {
      const known = await this.known()
      const found = await this.differencesBy(known, { everything })
      // What a feed shows may arrive between two questions.
      if (Object.keys(found).length === 0 || (await this.known()).size === known.size) return found
    }
  }

  private async differencesBy(
    told: Set<string>,
    { everything }: { everything: boolean },
  ): Promise<Differences> {
    const { world, host } = this
    const answers = answersAtRest(world, { told, follow: this.plan.follow })
    const { headers, history } = world
    const isRoot = (root: string, height: number): boolean => headers.rootAt(height) === root
    const tracker = {
      isRoot,
      isValidRootForHeight: async (root: string, height: number) => isRoot(root, height),
      currentHeight: async () => headers.bestTip.height,
    }
    const lookup = host.lookup?.bind(host)
    return await differences({ url: host.url, history, answers, tracker, lookup }, { everything })
  }

  /** What the service was told, and what else it shows to know: more than it needs changes no answer but by what is known. */
  private async known(): Promise<Set<string>> {
    const known = new Set(this.told)
    for (const { txid, said } of this.world.history.transactions) {
      if (await this.holds(txid)) known.add(txid)
      for (const vout of known.has(txid) ? said.keys() : []) {
        const { status, body } = await ask(this.host.url, { path: `/svc/txo/${txid}_${vout}/spend` })
        const spender = status === 200 ? JSON.parse(body.toString('utf8')).spendTxid : null
        if (spender !== null) known.add(spender)
      }
    }
    for (const txid of this.told) {
      const winner = await this.winnerOver(txid)
      if (winner !== undefined) known.add(winner)
    }
    return known
  }

  /**
   * The mined rival for which the service refuses an unmined transaction that it took before. It may know the rival by chance,
   * and then shows it in no other answer.
   */
  private async winnerOver(txid: string): Promise<string | undefined> {
    const { world } = this
    const transaction = world.history.byTxid.get(txid)
    if (transaction === undefined || world.isMined(txid)) return undefined
    if (!world.unminedLine(transaction).some((each) => world.rivalsOf(each).length > 0)) return undefined
    const { status, body } = await this.host.submit(
      this.enclosed([...world.ancestorsOf(transaction), transaction]),
      BOTH_TOPICS,
    )
    if (status !== 409) return undefined
    const { txid: winner } = JSON.parse(body.toString('utf8'))
    return world.isMined(winner) ? winner : undefined
  }

  private enclosed(members: readonly HistoryTransaction[]): Enclosed[] {
    const { branch } = this.world.headers
    return members.map((transaction) => ({ transaction, proof: branch.proof(transaction.txid) }))
  }

  private async holds(txid: string): Promise<boolean> {
    return (await ask(this.host.url, { path: `/svc/beef/${txid}/tx` })).status === 200
  }

  private broadcast(at: number): void {
    const chosen = this.chosen(at, (each) => this.world.isValid(each))
    if (chosen === undefined || !this.world.broadcast(chosen)) return
    this.note('broadcast', `broadcast ${this.named(chosen.txid)}`)
  }

  private async submitUnproven(at: number): Promise<void> {
    const { world } = this
    const canRun = (each: HistoryTransaction): boolean => world.isMined(each.txid) || !each.needsProof
    const chosen = this.chosen(at, (each) => {
      const isUnmined = world.isValid(each) || world.mempool.includes(each)
      return isUnmined && canRun(each) && world.ancestorsOf(each).every(canRun)
    })
    if (chosen === undefined) return
    const isRival = world.conflictsOf(chosen).length > 0
    await this.submit(
      [...world.ancestorsOf(chosen), chosen],
      isRival ? 'submit a double spend' : 'submit unproven',
    )
    world.broadcast(chosen)
  }

  /** Submits until the service has decided, or the client gives up. What loses to a double spend that it knows is refused. */
  private async submit(members: readonly HistoryTransaction[], what: string): Promise<void> {
    const enclosed = this.enclosed(members)
    const isProven = enclosed.at(-1)?.proof !== undefined
    // A service whose headers are older than the block refuses it, or cannot tell.
    const isOpen = (status: number): boolean => status === 503 || (status === 400 && this.plan.ownHeaders)
    const end = Date.now() + TRIED_FOR
    let answer = await this.host.submit(enclosed, BOTH_TOPICS)
    while (isOpen(answer.status) && Date.now() < end) {
      await this.sources.questions(1, { atMost: 50 })
      answer = await this.host.submit(enclosed, BOTH_TOPICS)
    }
    this.note(
      `${what}: ${answer.status}`,
      `${what} ${members.map(({ txid }) => this.named(txid))}: ${answer.status}`,
    )
    if (answer.status === 200) for (const { txid } of members) this.told.add(txid)
    else if (!isOpen(answer.status) && (answer.status !== 409 || isProven))
      throw new Error(`${what}: ${answer.status} ${answer.body.toString('utf8')}\n${this.log.join('\n')}`)
  }

  private chosen(
    at: number,
    fits: (transaction: HistoryTransaction) => boolean,
  ): HistoryTransaction | undefined {
    const { transactions, first } = this.world.history
    return new Random(at).pick(transactions.filter((each) => !first.has(each) && fits(each)))
  }

  private note(what: string, line: string): void {
    this.happened[what] = (this.happened[what] ?? 0) + 1
    this.log.push(line)
  }

  private chain(): string {
    const { world } = this
    const mined = world.history.transactions.filter(({ txid }) => world.isMined(txid))
    const shown = (some: readonly HistoryTransaction[]): string =>
      some.map(({ txid }) => this.named(txid)).join(' ')
    return `height ${world.headers.bestTip.height}, mined ${shown(mined)}; mempool ${shown(world.mempool)}`
  }

  private named(txid: string): string {
    return this.names.get(txid) ?? txid
  }

  private described({ txid, spends, said, mint }: HistoryTransaction): string {
    const inputs = spends.map((spent) => `${this.named(spent.slice(0, 64))}${spent.slice(64)}`).join(' ')
    const outputs = said.map(({ satoshis, content, map, domain }) =>
      [satoshis, domain !== undefined && `node ${domain}`, content && 'content', map && 'map']
        .filter((part) => part !== false && part !== undefined)
        .join(' '),
    )
    const minted = mint === undefined ? '' : ` mints ${mint.name}`
    return `${this.named(txid)} ${txid.slice(0, 8)}${minted}: ${inputs} -> ${outputs.join(', ')}`
  }
}
