import { TOPICS } from '../../backend/src/protocol/profile.js'
import { ConflictError, InvalidSubmissionError } from '../../src/server/submission/errors.js'
import { ForestAnswers } from './answers.js'
import { beefOfAll, type Enclosed, minableIn, numbers, PlainChain } from './chain.js'
import type { Forest, ForestTransaction } from './forest.js'
import type { Happening } from './happenings.js'
import { ForestModel, type NewRecords } from './model.js'
import type { ForestNode } from './node.js'
import { expectTables } from './reads.js'
import { expectOutcome, type Got, type Manner, type Member, membersOf, recordsOf } from './submission.js'

/** A forest that is submitted to a node while its chain goes on, beside the model of what the node should hold. */
export class ForestLife {
  readonly model: ForestModel
  /** How often each thing has happened. */
  readonly happened: Record<string, number> = {}
  private readonly submitted = new Set<string>()

  private constructor(
    readonly forest: Forest,
    readonly node: ForestNode,
    readonly chain: PlainChain,
  ) {
    this.model = new ForestModel(forest)
  }

  /** Starts with an empty node, to which the genesis of the tree is submitted. */
  static async start(forest: Forest, node: ForestNode): Promise<ForestLife> {
    const chain = new PlainChain()
    chain.mine([forest.genesis.txid, forest.purse.txid])
    return await ForestLife.begin(forest, node, chain)
  }

  private static async begin(forest: Forest, node: ForestNode, chain: PlainChain): Promise<ForestLife> {
    const life = new ForestLife(forest, node, chain)
    await node.clear(chain)
    // The first, as a server makes it when it starts: the next one knows from which tip on.
    await node.watch.round()
    await life.submit(forest.genesis, { proven: true, sources: 'none', lag: false })
    return life
  }

  /**
   * Submits to another node, from scratch, what counts here: what is mined in the order of blocks, then the rest as it came.
   * Undefined where something cannot be submitted alone: nobody here can sign for it, and it came as the source of another.
   */
  async rebuilt(node: ForestNode): Promise<ForestLife | undefined> {
    const { counts, order } = this.answers.decision
    const all = order
      .flatMap((txid) => this.forest.byTxid.get(txid) ?? [])
      .filter(({ txid }) => counts.has(txid))
    const own = all.filter((each) => each !== this.forest.genesis && each !== this.forest.purse)
    if (own.some(({ txid, needsProof }) => needsProof && !this.model.proofs.has(txid))) return undefined
    const life = await ForestLife.begin(this.forest, node, this.chain)
    const blockOf = (txid: string) => this.chain.everMined.get(this.model.proofs.get(txid)?.root ?? '')
    for (const transaction of own) {
      const proven = blockOf(transaction.txid) !== undefined
      await life.submit(transaction, { proven, sources: 'bare', lag: false }, blockOf)
    }
    return life
  }

  async happen(event: Happening): Promise<void> {
    const { counts } = this.model.decision
    const known = [...this.model.insertionOrder.keys()]
    await this.doWhatHappens(event)
    const { counts: now } = this.model.decision
    if (known.some((txid) => counts.has(txid) !== now.has(txid))) this.count('branch reorganised')
  }

  private async doWhatHappens(event: Happening): Promise<void> {
    switch (event.kind) {
      case 'submit': {
        const transaction = this.chosen(event)
        if (transaction !== undefined) await this.submit(transaction, event)
        return
      }
      case 'mine':
        return this.mine(event)
      case 'follow':
        return await this.follow()
      case 'stale':
        return await this.submitStale(event.at)
      case 'ingest':
        return await this.ingest(event)
    }
  }

  /** Lets the node learn of every block that is no more. */
  async follow(): Promise<void> {
    this.count('follow')
    await this.node.watch.round()
    await this.learnProofs()
    const { counts } = this.model.decision
    for (const [txid, proof] of this.model.proofs) {
      const state = { txid, accepted: this.chain.accepts(proof), counts: counts.has(txid) }
      expect(state).toEqual({ txid, accepted: true, counts: true })
    }
  }

  /** Submits everything that is known and mined, with its proof. */
  async submitProofs(): Promise<void> {
    for (const transaction of this.forest.transactions) {
      const isMined = this.chain.blockOf(transaction.txid) !== undefined
      if (isMined && this.model.insertionOrder.has(transaction.txid))
        await this.submit(transaction, { proven: true, sources: 'bare', lag: false })
    }
  }

  /** What must hold at every moment, whatever any model says; and what the tables say of what counts. */
  async expectSound(): Promise<void> {
    const { reader } = this.node.database
    await expectTables(this.node, this.answers, this.forest)
    const more = async (sql: string): Promise<unknown[]> => await reader.all(sql, [])
    expect(await more('select name from graph_names group by name having count(*) > 1')).toEqual([])
    expect(
      await more(
        `select txid from graph_spends as spends where not exists (
           select 1 from graph_nodes as nodes where nodes.txid = spends.txid and nodes.vout = spends.vout
         ) group by txid, vout having count(*) > 1`,
      ),
    ).toEqual([])
    expect(
      await more(
        `select domain from graph_nodes as nodes where not exists (
           select 1 from graph_spends as spends join graph_nodes as spending on spending.txid = spends.spender
           where spends.txid = nodes.txid and spends.vout = nodes.vout
         ) group by domain having count(*) > 1`,
      ),
    ).toEqual([])
    const inactive = new Set<string>()
    for (const { txid, spends } of this.forest.transactions) {
      if (!this.model.insertionOrder.has(txid)) continue
      const isInactive = (await this.node.graph.transactions.winnerOver(txid)) !== undefined
      if (isInactive) inactive.add(txid)
      else expect(spends.filter((spent) => inactive.has(spent.slice(0, 64)))).toEqual([])
    }
  }

  /** Whether the node holds a proof of a transaction: blocks that the chain has, of it or of all that it is built on. */
  isProven(txid: string): boolean {
    const proof = this.model.proofs.get(txid)
    if (proof !== undefined) return this.chain.accepts(proof)
    const spends = this.forest.byTxid.get(txid)?.spends ?? []
    return this.model.insertionOrder.has(txid) && spends.every((spent) => this.isProven(spent.slice(0, 64)))
  }

  get answers(): ForestAnswers {
    return new ForestAnswers(this.model)
  }

  private count(what: string): void {
    this.happened[what] = (this.happened[what] ?? 0) + 1
  }

  private chosen({ which, at }: Extract<Happening, { kind: 'submit' }>): ForestTransaction | undefined {
    const { transactions } = this.forest
    const some =
      which === 'next'
        ? transactions.filter(({ txid }) => !this.submitted.has(txid)).slice(0, 2)
        : which === 'moved'
          ? transactions.filter(
              ({ txid }) => this.chain.blockOf(txid)?.root !== this.model.proofs.get(txid)?.root,
            )
          : transactions
    return some[at % Math.max(some.length, 1)]
  }

  /** Submits a transaction, with what its BEEF needs, and holds what comes of it against the model. */
  async submit(
    transaction: ForestTransaction,
    how: Manner,
    blockOf = (txid: string) => this.chain.blockOf(txid),
  ): Promise<void> {
    const { forest, chain } = this
    const members = (proven: boolean) => membersOf(transaction, { ...how, proven, forest, chain, blockOf })
    const isSigned = (all: Member[]): boolean =>
      !all.some((each) => each.needed && each.block === undefined && each.transaction.needsProof)
    // With a proof, where nobody here could sign.
    const enclosed = [members(how.proven), members(true)].find(isSigned)
    if (enclosed === undefined) return
    this.submitted.add(transaction.txid)
    const got = await this.sent(enclosed)
    await this.learnProofs()
    const expected = this.model.submit(recordsOf(enclosed))
    this.count(`${expected.kind}${enclosed.at(-1)?.block ? ', proven' : ''}`)
    expectOutcome(got, expected)
    if (expected.kind !== 'taken') return
    this.expectProvenToCount(recordsOf(enclosed.filter(({ needed }) => needed)))
  }

  /** What has just been proven counts, whatever outdated proofs its double spends had, unless an ancestor has lost. */
  private expectProvenToCount(records: NewRecords[]): void {
    const { counts } = this.model.decision
    const isInactive = (txid: string): boolean => this.model.insertionOrder.has(txid) && !counts.has(txid)
    const lost = records
      .filter(({ txid, proof }) => proof !== undefined && isInactive(txid))
      .filter(
        ({ txid }) => !this.forest.byTxid.get(txid)?.spends.some((spent) => isInactive(spent.slice(0, 64))),
      )
    expect(lost).toEqual([])
  }

  private async submitStale(at: number): Promise<void> {
    const stale = [...this.chain.everMined.values()]
      .filter((block) => !this.chain.accepts(block))
      .flatMap((block) =>
        block.leaves.flatMap((txid) => ({ block, transaction: this.forest.byTxid.get(txid) })),
      )
    const one = stale[at % Math.max(stale.length, 1)]
    if (one?.transaction === undefined) return
    this.count('stale')
    const got = await this.sent([{ transaction: one.transaction, block: one.block }])
    expect(got).toEqual({ kind: 'invalid' })
    await this.learnProofs()
  }

  private async ingest({ at, stale }: Extract<Happening, { kind: 'ingest' }>): Promise<void> {
    const mined = [...this.chain.everMined.values()]
      .filter((block) => this.chain.accepts(block) !== stale)
      .flatMap((block) => block.leaves.map((txid) => ({ block, txid })))
      .filter(({ txid }) => this.forest.byTxid.has(txid))
    const one = mined[at % Math.max(mined.length, 1)]
    if (one === undefined) return
    const { block, txid } = one
    const isKnown = this.model.insertionOrder.has(txid)
    expect(await this.node.ingest(txid, block)).toBe(isKnown ? (stale ? 400 : 200) : 404)
    await this.learnProofs()
    if (!isKnown || stale) return
    this.count('ingested')
    this.model.prove(txid, block)
    this.expectProvenToCount([{ txid, proof: block }])
  }

  private async sent(members: Enclosed[]): Promise<Got> {
    try {
      const steak = await this.node.submit(beefOfAll(members))
      const topics = [TOPICS.names, TOPICS.ordinals]
      const admitted = topics.map((topic) => [topic, steak[topic]?.outputsToAdmit ?? []])
      return { kind: 'taken', admitted: Object.fromEntries(admitted) }
    } catch (error) {
      if (error instanceof ConflictError) return { kind: 'lost', winner: error.data.txid }
      if (error instanceof InvalidSubmissionError) return { kind: 'invalid' }
      throw error
    }
  }

  /** The proofs that the node has let go of are to be ones that the chain does not hold. */
  private async learnProofs(): Promise<void> {
    for (const [txid, proof] of this.model.proofs) {
      const kept = (await this.node.graph.transactions.get(txid))?.proof
      if (kept?.root === proof.root || this.chain.accepts(proof)) continue
      if (kept === undefined) this.model.disprove(txid)
    }
  }

  private mine({ reorg, blocks, choice }: Extract<Happening, { kind: 'mine' }>): void {
    const taken = this.chain.takeBack(reorg)
    this.count(taken.length > 0 ? 'reorg' : 'mine')
    // As long as what it replaces, and a block longer.
    const count = taken.length > 0 ? Math.max(blocks, taken.length + 1) : blocks
    const chance = numbers(choice)
    for (let block = 0; block < count; block++)
      this.chain.mine(minableIn(this.chain, this.forest, { chance, instead: taken }))
  }
}
