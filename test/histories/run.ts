import type { Sighting } from '../../backend/src/graph/conflict-resolution.js'
import { CONTENT_TYPES } from '../support/graph/said-outputs.js'
import { Random } from '../support/random.js'
import type { Block, HeaderChain } from '../support/server/header-chain.js'
import { type Answers, sha256 } from './answers.js'
import { BOTH_TOPICS, CERTAIN, type Happening, type Manner, STATUSES } from './happenings.js'
import { type Deed, type History, type HistoryTransaction, historyOf, type Shape } from './history.js'
import type { Answer, Differences, Enclosed, Host } from './host.js'
import { MinedChain } from './mined-chain.js'
import { type Member, Model } from './model.js'
import { differences } from './questions.js'

/** How a run ends that finds a host to be wrong: what happened, and each answer that is another. */
export class Violation extends Error {
  override readonly name = 'Violation'

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

/** A history that is submitted to a host while its chain goes on, beside the model of what the host should answer. */
export class Run<At extends Host = Host> {
  /** How often each thing has happened. */
  readonly happened: Record<string, number> = {}
  readonly model: Model
  /**
   * Whether what became final lost to several. It waits for the one that the host compared it with, and nobody says which that is: from
   * then on, the model knows no answers.
   */
  mayTie = false
  private readonly submitted = new Set<string>()
  private readonly log: string[] = []
  private readonly names: Map<string, string>

  private constructor(
    readonly history: History,
    readonly chain: MinedChain,
    readonly host: At,
  ) {
    this.model = new Model(history, (proof) => chain.accepts(proof), host)
    this.names = new Map(history.transactions.map(({ txid }, at) => [txid, `t${at}`]))
    for (const each of history.transactions) this.log.push(this.described(each))
  }

  /**
   * @param options.mined With which chance a transaction is in each of the first blocks; 0 for none of them.
   * @param options.open Starts a host, which follows these headers.
   */
  static async start<At extends Host>(options: {
    deeds: Deed[]
    shape: Shape
    mined?: { blocks: number; share: number; choice: number }
    open(of: { history: History; headers: HeaderChain }): Promise<At>
  }): Promise<Run<At>> {
    const { deeds, shape, mined, open } = options
    const history = historyOf(deeds, shape)
    const chain = new MinedChain(history)
    if (mined !== undefined) chain.mine(mined)
    const host = await open({ history, headers: chain.headers })
    return new Run(history, chain, host)
  }

  /** Makes something happen, and compares what is stored with the model. */
  async happen(event: Happening): Promise<void> {
    this.readPlaces()
    const { answers: before } = this.model
    await this.doWhatHappens(event)
    if (event.kind === 'mine' || event.kind === 'return') await this.host.chainChanged?.()
    await this.host.untilIdle()
    const { counts } = this.model.answers.decision
    const isChanged = ({ txid }: HistoryTransaction): boolean =>
      before.isKnown(txid) && before.decision.counts.has(txid) !== counts.has(txid)
    if (this.history.transactions.some(isChanged)) this.count('branch reorganised')
    if (!this.mayTie) await this.expectStored(`after ${event.kind}`)
  }

  /** Submits genesis with its proof. */
  async submitGenesis(): Promise<void> {
    await this.submit(this.history.genesis, CERTAIN)
  }

  /** Submits what was not submitted yet, in some order, as far as it can be valid. */
  async submitRest(choice: number): Promise<void> {
    const random = new Random(choice)
    const left = this.history.transactions
      .filter(({ txid }) => !this.submitted.has(txid))
      .map((transaction) => ({
        transaction,
        place: random.next() + (this.history.subjects.includes(transaction) ? 0 : random.next()),
      }))
      .sort((a, b) => a.place - b.place)
    for (const { transaction } of left) {
      await this.submit(transaction, {
        proven: random.next() < 0.85,
        sources: random.next() < 0.7 ? 0 : random.next(),
        deep: random.next() < 0.5,
        sourceProofs: random.next() < 0.5,
        lag: random.next() < 0.2,
        topics: random.next() < 0.6 ? BOTH_TOPICS : [random.next() < 0.5 ? 'tm_names' : 'tm_ordinals'],
        choice: random.below(0xffff),
      })
    }
  }

  /** Lets the host learn of every block that is no more. */
  async follow(): Promise<void> {
    this.note('follow', 'follow')
    await this.host.follow(this.chain.takeChange())
    await this.learnProofs()
    if (this.isTrusting) return
    const { counts } = this.model.answers.decision
    for (const [txid, proof] of this.model.proofs) {
      const state = { accepted: this.chain.accepts(proof), counts: counts.has(txid) }
      if (!state.accepted || !state.counts)
        this.fail(`the proof of ${txid}`, { got: state, expected: { accepted: true, counts: true } })
    }
  }

  /** @param options.everything Whether each route is asked about each output, and not only those that tell of many at once. */
  async read(when: string, { everything }: { everything: boolean }): Promise<void> {
    this.note('read', `read ${when}`)
    await this.host.untilIdle()
    const { headers } = this.chain
    const isRoot = (root: string, height: number) => this.isTrusting || headers.rootAt(height) === root
    const tracker = {
      isRoot,
      isValidRootForHeight: async (root: string, height: number) => isRoot(root, height),
      currentHeight: async () => headers.bestTip.height,
    }
    const { url } = this.host
    const asked = { url, history: this.history, answers: this.model.answers, tracker }
    const found = await differences(asked, { everything })
    if (Object.keys(found).length > 0) throw this.violation(when, found)
    await this.expectStored(when)
  }

  /** Fails where something that was read is not the same. */
  expectSame(when: string, found: Differences): void {
    if (Object.keys(found).length > 0) throw this.violation(when, found)
  }

  private async expectStored(when: string): Promise<void> {
    this.expectSame(when, (await this.host.storedDifferences?.(this.model)) ?? {})
  }

  /** What enters the log by what happens next does so in the order in which it came: that is for the model to say. */
  private readPlaces(): void {
    const places = this.host.placesInLog?.()
    if (places !== undefined) this.model.enterLog(places)
  }

  /** Whether the host takes any proof. */
  private get isTrusting(): boolean {
    return this.host.tracker === 'scripts-only'
  }

  private count(what: string): void {
    this.happened[what] = (this.happened[what] ?? 0) + 1
  }

  private async doWhatHappens(event: Happening): Promise<void> {
    switch (event.kind) {
      case 'submit': {
        const chosen = this.chosen(event)
        if (chosen !== undefined) await this.submit(chosen, event)
        return
      }
      case 'mine':
        return this.mine(event)
      case 'return': {
        const taken = this.chain.comeBack(event.choice)
        if (taken !== undefined) this.note('return', `a branch counts again, in place of ${taken} blocks`)
        return
      }
      case 'release':
        return await this.release()
      case 'follow':
        return await this.follow()
      case 'stale':
        return await this.submitStale(event.at)
      case 'ingest':
        return await this.ingest(event)
      case 'sight': {
        const { txid } = this.history.transactions[event.at % this.history.transactions.length] ?? {}
        if (txid !== undefined && txid !== this.history.genesis.txid) await this.sight(txid, event.status)
        return
      }
      case 'block':
        return await this.block(event)
      case 'unblock': {
        const item = this.model.blocked[event.at]
        if (item === undefined) return
        this.note('unblock', `unblock ${item.kind} ${item.value}`)
        this.expectStatus('unblock', await this.host.unblock(item))
        this.model.unblock(item)
        return
      }
      case 'read':
        return await this.read('in between', { everything: false })
      case 'kill':
        return await this.killWhile(event)
      case 'restart':
        this.note('restart', 'restart')
        await this.host.restart?.()
        return
      case 'callback':
        return await this.callback(event)
      case 'narrow': {
        const types = this.model.narrow(CONTENT_TYPES[event.at % CONTENT_TYPES.length] ?? '')
        this.note('narrow', `the policy does not take ${types.join()}`)
        await this.host.refuseTypes?.(types)
        return
      }
      case 'tracker':
        this.note(`tracker: ${event.tracker}`, `${event.tracker} decides about proofs`)
        return await this.host.decideBy?.(event.tracker)
      case 'prune': {
        const dropped = await this.host.prune?.()
        const expected = this.model.prune()
        this.note(expected > 0 ? 'prune: some' : 'prune: none', 'prune')
        if (dropped !== expected) this.fail('how many are pruned', { got: dropped, expected })
        this.readPlaces()
      }
    }
  }

  /** Ends the host while a submission is under way, so that nobody knows whether it was taken; and sends it again. */
  private async killWhile(event: Extract<Happening, { kind: 'kill' }>): Promise<void> {
    const transaction = this.chosen({ which: 'any', at: event.at })
    const members = transaction && this.membersOf(transaction, event)
    if (transaction === undefined || members === undefined) return
    this.note('kill', `kill while ${this.named(transaction.txid)} is submitted`)
    const answered = this.host.submit(members, event.topics).catch(() => undefined)
    await this.host.kill?.()
    await answered
    await this.host.untilIdle()
    await this.submit(transaction, event)
  }

  chosen({
    which,
    at,
  }: Pick<Extract<Happening, { kind: 'submit' }>, 'which' | 'at'>): HistoryTransaction | undefined {
    const { transactions, subjects } = this.history
    const isMoved = ({ txid }: HistoryTransaction): boolean =>
      this.chain.blockOf(txid)?.header.root !== this.model.proofs.get(txid)?.root
    // What pays comes late more often than not, so that what it places has to wait.
    const some = (which === 'new' || which === 'made' ? subjects : transactions)
      .filter((each) =>
        which === 'moved' ? isMoved(each) : which === 'any' || !this.submitted.has(each.txid),
      )
      .filter((each) => this.membersOf(each, CERTAIN) !== undefined)
      .slice(0, which === 'made' ? 2 : which === 'next' ? 1 : undefined)
    return some[at % Math.max(some.length, 1)]
  }

  /** Submits a transaction, with what its BEEF needs, and compares what comes of it with the model. */
  private async submit(transaction: HistoryTransaction, how: Manner): Promise<void> {
    const members =
      this.membersOf(transaction, how) ??
      this.membersOf(transaction, { ...how, proven: CERTAIN.proven, lag: CERTAIN.lag })
    if (members === undefined) return
    this.submitted.add(transaction.txid)
    const records = recordsOf(members)
    this.readPlaces()
    const answer = await this.host.submit(members, how.topics)
    await this.host.untilIdle()
    await this.learnProofs()
    const before = this.model.answers
    const outcome = this.model.submit(records, this.chain.headers.bestTip.height)
    this.countLate(before)
    const shown = members.map(({ transaction: { txid }, proof }) => `${this.named(txid)}${proof ? '*' : ''}`)
    const what = `submit: ${outcome.kind}${members.at(-1)?.proof ? ', proven' : ''}`
    this.note(what, `submit ${shown.join(' ')} to ${how.topics.join()}: ${outcome.kind}`)
    const asked = `POST /submit of ${transaction.txid}`
    const said = answer.body.toString('utf8')
    if (outcome.kind === 'lost') {
      const isUnnamed = outcome.winners.size === 0 && answer.status === 400
      if (answer.status !== 409 && !isUnnamed) this.fail(asked, { got: said, expected: 409 })
      const { txid } = answer.status === 409 ? (JSON.parse(said) as { txid: string }) : { txid: '' }
      if (outcome.winners.size > 0 && !outcome.winners.has(txid))
        this.fail(`${asked}: the winner`, { got: txid, expected: [...outcome.winners] })
      if (answer.status === 409) outcome.waitFor(txid)
      if (this.model.isKnown(transaction.txid)) this.count('submit: waits')
      return
    }
    if (answer.status !== 200) this.fail(asked, { got: said, expected: 200 })
    if (outcome.kind === 'held') {
      const outputs = Object.values(JSON.parse(said) as Record<string, { outputsToAdmit: number[] }>)
      const got = outputs.flatMap(({ outputsToAdmit }) => outputsToAdmit)
      if (got.length > 0) this.fail(asked, { got, expected: [] })
      return
    }
    const { answers } = this.model
    this.expectProvenToCount(recordsOf(members.filter(({ isNeeded }) => isNeeded)))
    // For what does not count now, the answer does not say what is admitted.
    if (!answers.decision.counts.has(transaction.txid)) return
    const steak = JSON.parse(said) as Record<string, { outputsToAdmit: number[] }>
    const got = how.topics.map((topic) => [topic, steak[topic]?.outputsToAdmit.toSorted((a, b) => a - b)])
    const expected = how.topics.map((topic) => [
      topic,
      answers.admittedOf(topic as 'tm_names' | 'tm_ordinals', transaction.txid),
    ])
    if (JSON.stringify(got) !== JSON.stringify(expected)) this.fail(asked, { got, expected })
  }

  /** What has just been proven counts, whatever outdated proofs its double spends had, unless an ancestor has lost. */
  private expectProvenToCount(records: readonly Member[]): void {
    if (this.isTrusting) return
    const { answers, history } = this.model
    const isInactive = (txid: string): boolean => answers.isKnown(txid) && !answers.decision.counts.has(txid)
    const lost = records
      .filter(({ txid, proof }) => proof !== undefined && isInactive(txid))
      .filter(({ txid }) => !history.byTxid.get(txid)?.spends.some((spent) => isInactive(spent.slice(0, 64))))
    if (lost.length > 0) this.fail('what is proven and does not count', { got: lost, expected: [] })
  }

  /** Counts what was known before and is admitted only now, by what it had waited for. */
  private countLate(before: Answers): void {
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
  membersOf(
    subject: HistoryTransaction,
    how: Manner,
  ): (Enclosed & { block: Block | undefined; isNeeded: boolean })[] | undefined {
    const { history, chain } = this
    const random = new Random(how.choice)
    const found = new Map<string, { isProven: boolean; isNeeded: boolean }>()
    const parentsOf = ({ spends }: HistoryTransaction): HistoryTransaction[] =>
      [...new Set(spends.map((spent) => spent.slice(0, 64)))].flatMap(
        (txid) => history.byTxid.get(txid) ?? [],
      )
    const isMined = ({ txid }: HistoryTransaction): boolean => chain.has(txid)
    const need = (transaction: HistoryTransaction, isProven: boolean): boolean => {
      if (found.has(transaction.txid)) return true
      found.set(transaction.txid, { isProven, isNeeded: true })
      if (isProven) return true
      if (transaction.needsProof) return false
      const isLate = (parent: HistoryTransaction): boolean => how.lag && !parent.needsProof
      return parentsOf(transaction).every((parent) => need(parent, isMined(parent) && !isLate(parent)))
    }
    if (!need(subject, isMined(subject) && (how.proven || subject.needsProof))) return undefined
    const bring = (transaction: HistoryTransaction): void => {
      for (const parent of parentsOf(transaction)) {
        if (found.has(parent.txid) || random.next() >= how.sources) continue
        found.set(parent.txid, { isProven: isMined(parent) && how.sourceProofs, isNeeded: false })
        if (how.deep) bring(parent)
      }
    }
    for (const [txid, { isProven }] of [...found]) {
      const transaction = history.byTxid.get(txid)
      if (isProven && transaction !== undefined) bring(transaction)
    }
    const parentsFirst = history.transactions.filter(({ txid }) => txid !== subject.txid && found.has(txid))
    return [...parentsFirst, subject].map((transaction) => {
      const { isProven = false, isNeeded = false } = found.get(transaction.txid) ?? {}
      const block = isProven ? chain.blockOf(transaction.txid) : undefined
      return { transaction, isNeeded, block, proof: block?.proof(transaction.txid) }
    })
  }

  private async submitStale(at: number): Promise<void> {
    const stale = this.chain.everMined({ isStale: true })
    const one = stale[at % Math.max(stale.length, 1)]
    if (one === undefined) return
    this.note('stale', `submit ${this.named(one.transaction.txid)} with a stale proof`)
    const answer = await this.host.submit(
      [{ transaction: one.transaction, proof: one.block.proof(one.transaction.txid) }],
      BOTH_TOPICS,
    )
    this.expectStatus('POST /submit with a stale proof', answer, this.isTrusting ? 200 : 400)
    await this.learnProofs()
    if (!this.isTrusting) return
    const { transaction, block } = one
    this.model.submit(recordsOf([{ transaction, block }]), this.chain.headers.bestTip.height)
  }

  private async ingest({ at, stale }: Extract<Happening, { kind: 'ingest' }>): Promise<void> {
    const mined = this.chain.everMined({ isStale: stale })
    const one = mined[at % Math.max(mined.length, 1)]
    if (one === undefined) return
    const { txid } = one.transaction
    const isKnown = this.model.isKnown(txid)
    const what = `ingest: ${isKnown ? 'known' : 'unknown'}${stale ? ', stale' : ''}`
    this.note(what, `ingest ${this.named(txid)}${stale ? ', stale' : ''}`)
    // One that it has is not looked at again.
    const isHeld = this.model.proofs.get(txid)?.root === one.block.header.root
    const answer = await this.host.ingest(txid, one.block.path(txid).toHex())
    this.expectStatus(
      `ingest of ${txid}`,
      answer,
      isKnown ? (stale && !isHeld && !this.isTrusting ? 400 : 200) : 404,
    )
    await this.host.untilIdle()
    await this.learnProofs()
    if (!isKnown || (stale && !this.isTrusting)) return
    this.model.prove(txid, one.block.header)
    this.expectProvenToCount([{ txid, proof: one.block.header }])
  }

  private async sight(txid: string, status: Sighting): Promise<void> {
    const { host, model } = this
    const isCounting = model.answers.decision.counts.has(txid)
    if (!(await host.sight({ txid, status }))) return
    model.sight(txid, status)
    const counts = model.answers.decision.counts.has(txid)
    const effect = isCounting === counts ? '' : counts ? ', and counts' : ', and counts no more'
    this.note(`sight: ${status}${effect}`, `${this.named(txid)} is ${status}${effect}`)
  }

  private async callback({ at, status }: Extract<Happening, { kind: 'callback' }>): Promise<void> {
    const { txid } = this.history.transactions[at % this.history.transactions.length] ?? this.history.genesis
    if (txid === this.history.genesis.txid) return
    this.note(`callback: ${STATUSES[status] ?? 'neither'}`, `${this.named(txid)} is ${status}`)
    this.expectStatus('a callback', await this.host.callback(txid, status))
    const said = STATUSES[status]
    if (said !== undefined) this.model.sight(txid, said)
  }

  private async block({ what, at }: Extract<Happening, { kind: 'block' }>): Promise<void> {
    const outputs = this.history.subjects.flatMap(({ said, outpoint, mint }) =>
      said.map(({ content, map }, vout) => ({ outpoint: outpoint(vout), content, map, name: mint?.name })),
    )
    // What blocked outputs say is left out of the MAP of the outputs behind them.
    const saying = outputs.filter(({ map }) => what === 'outpoint' && at % 2 === 0 && map !== undefined)
    const among = saying.length > 0 ? saying : outputs
    const one = among[at % among.length]
    const values = {
      outpoint: one?.outpoint,
      sha256: one?.content && sha256(one.content.body),
      name: one?.name,
    }
    const value = values[what]
    if (value === undefined) return
    this.note('block', `block ${what} ${value}`)
    this.expectStatus('block', await this.host.block({ kind: what, value }))
    this.model.block({ kind: what, value })
  }

  private mine({ reorg, blocks, choice }: Extract<Happening, { kind: 'mine' }>): void {
    const taken = this.chain.mine({ reorg, blocks, choice, share: 0.5 })
    const shown = this.history.transactions.flatMap(({ txid }) => {
      const height = this.chain.blockOf(txid)?.header.height
      return height === undefined ? [] : [`${this.named(txid)}@${height}`]
    })
    this.note(taken > 0 ? 'reorg' : 'mine', `mine, in place of ${taken} blocks: ${shown.join(' ')}`)
  }

  /** Lets the host take what it held until it is final, as if it were submitted now. */
  private async release(): Promise<void> {
    if (this.host.release === undefined) return
    const final = this.model.finalAt(this.chain.headers.bestTip.height)
    this.note(final.length > 0 ? 'release: some' : 'release: none', 'release')
    await this.host.release()
    for (const { txid, members } of final) {
      this.log.push(`  ${this.named(txid)} is final`)
      this.model.release(txid)
      // One with a proof that is out of date is not valid any more.
      if (members.some(({ proof }) => proof !== undefined && !this.chain.accepts(proof)) && !this.isTrusting)
        continue
      const outcome = this.model.submit(members, this.chain.headers.bestTip.height)
      if (outcome.kind !== 'lost') continue
      // Nobody says to which it lost, but what was rejected has lost to nobody else.
      const [winner = ''] = outcome.winners.has(txid) ? [txid] : outcome.winners
      if (outcome.winners.size > 1) this.mayTie = true
      outcome.waitFor(winner)
    }
    await this.learnProofs()
  }

  /** A host may drop proofs that the chain has taken back before it follows, and no others. */
  private async learnProofs(): Promise<void> {
    for (const { txid, proof } of this.model.blocksOfProofs) {
      if (this.chain.accepts(proof)) continue
      const fate = await this.host.fateOf(txid, proof)
      if (fate === 'refused') this.model.refuse(proof)
      if (fate === 'gone') this.model.forget(txid, proof)
    }
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
  private violation(at: string, found: Differences): Violation {
    const short = (text: string): string => text.replace(/[0-9a-f]{64}/g, (txid) => this.named(txid))
    const shown = JSON.parse(short(JSON.stringify(found, (_, value) => value ?? 'undefined'))) as Differences
    return new Violation(at, shown, this.log.map(short))
  }

  named(txid: string): string {
    return this.names.get(txid) ?? txid
  }

  described({ txid, spends, said, mint, needsProof }: HistoryTransaction): string {
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
    const height = this.chain.blockOf(txid)?.header.height
    const about = [
      mint === undefined ? '' : ` mints ${mint.name}`,
      needsProof ? ' needs proof' : '',
      height === undefined ? '' : ` mined at ${height}`,
    ]
    return `${this.named(txid)}:${about.join('')} [${inputs.join(', ')}] -> [${outputs.join(', ')}]`
  }
}

/** The records in a BEEF of these. A path proves the transaction beside its own in the merkle tree, too. */
export function recordsOf(
  members: readonly { transaction: HistoryTransaction; block: Block | undefined }[],
): Member[] {
  return members.map(({ transaction: { txid }, block }): Member => {
    const isBeside = (other: (typeof members)[number]): boolean => {
      const txids = other.block?.txids ?? []
      return txids[txids.indexOf(other.transaction.txid) ^ 1] === txid
    }
    const holding = block ?? members.find(isBeside)?.block
    return { txid, ...(holding && { proof: { height: holding.header.height, root: holding.header.root } }) }
  })
}
