import { MerklePath, Transaction } from '@bsv/sdk'
import type { TopicManager } from '../../../backend/src/graph/overlay-interfaces.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { type Answer, ask, type TestServer } from './test-server.js'

/**
 * A peer that syncs as the overlay engine of 2026 does, and refuses what that refuses: `RemoteSecurity.ts`, `OverlayGASPRemote.ts`
 * and `OverlayGASPStorage.ts` of `@bsv/overlay` 2.6, and `GASP.ts` of `@bsv/gasp` 1.3, restated. It judges each graph by itself.
 */
export class StrictEngine {
  /** What it took, as `<txid>.<vout>`. */
  readonly taken = new Set<string>()
  since = 0

  constructor(
    private readonly host: Pick<TestServer, 'url'>,
    private readonly options: {
      topic: string
      manager: Pick<TopicManager, 'identifyAdmissibleOutputs' | 'identifyNeededInputs'>
    },
  ) {}

  /** @throws Error at the first thing that the engine refuses. */
  async sync(limit: number): Promise<void> {
    for (;;) {
      const { since } = this
      const page = await this.page(since, limit)
      for (const { txid, outputIndex, score } of page) {
        this.since = Math.max(this.since, score)
        const graphID = `${txid}.${outputIndex}`
        if (this.taken.has(graphID)) continue
        await new Graph(graphID, (asked) => this.node(graphID, asked), this.options.manager).take()
        this.taken.add(graphID)
      }
      if (page.length < limit) return
      if (this.since <= since) throw new Error('a full page without advancing the score')
    }
  }

  private async page(
    since: number,
    limit: number,
  ): Promise<{ txid: string; outputIndex: number; score: number }[]> {
    const answer = await this.post('/requestSyncResponse', { version: 1, since, limit })
    const { UTXOList, since: theirs } = answer as { UTXOList: unknown; since: unknown }
    if (!Array.isArray(UTXOList) || UTXOList.length > limit) throw new Error('an oversized list')
    requireInteger(theirs, Number.MAX_SAFE_INTEGER)
    const seen = new Set<string>()
    for (const { txid, outputIndex, score } of UTXOList) {
      if (!/^[0-9a-fA-F]{64}$/.test(txid)) throw new Error('no txid')
      requireInteger(outputIndex, 0xffffffff)
      requireInteger(score, Number.MAX_SAFE_INTEGER)
      if (seen.has(`${txid}.${outputIndex}`)) throw new Error('an output twice in one list')
      seen.add(`${txid}.${outputIndex}`)
    }
    return UTXOList
  }

  private async node(graphID: string, asked: AskedNode): Promise<Node> {
    const node = (await this.post('/requestForeignGASPNode', { graphID, ...asked })) as Record<
      string,
      unknown
    >
    if (node.graphID !== graphID || node.outputIndex !== asked.outputIndex) throw new Error('another node')
    requireHex(node.rawTx, { most: 32 * 1024 * 1024, isEmpty: false })
    const transaction = Transaction.fromHex(String(node.rawTx))
    if (transaction.id('hex') !== asked.txid) throw new Error('another transaction')
    for (const field of ['proof', 'txMetadata', 'outputMetadata'] as const)
      if (node[field] !== undefined) requireHex(node[field], { most: 1024 * 1024, isEmpty: true })
    if (asked.outputIndex >= transaction.outputs.length) throw new Error('no such output')
    if (node.proof !== undefined) transaction.merklePath = MerklePath.fromHex(String(node.proof))
    return { ...asked, transaction, metadata: node.txMetadata as string | undefined }
  }

  private async post(path: string, body: object): Promise<unknown> {
    const headers = { 'Content-Type': 'application/json', 'X-BSV-Topic': this.options.topic }
    const answer: Answer = await ask(this.host.url, path, {
      ...{ method: 'POST', headers },
      body: JSON.stringify(body),
    })
    if (!/^application\/(?:[\w.-]+\+)?json(?:\s*;|$)/i.test(String(answer.headers['content-type'])))
      throw new Error('no JSON')
    if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${answer.body.toString()}`)
    return answer.json
  }
}

interface AskedNode {
  txid: string
  outputIndex: number
  metadata: boolean
}

interface Node {
  txid: string
  outputIndex: number
  transaction: Transaction
  metadata: string | undefined
}

const MAX_NODES = 2048

/** A temporary graph. */
class Graph {
  private readonly nodes = new Map<string, Node>()
  private readonly children = new Map<string, string[]>()

  constructor(
    private readonly graphID: string,
    private readonly ask: (asked: AskedNode) => Promise<Node>,
    private readonly manager: Pick<TopicManager, 'identifyAdmissibleOutputs' | 'identifyNeededInputs'>,
  ) {}

  async take(): Promise<void> {
    const [txid = '', vout] = this.graphID.split('.')
    await this.append({ txid, outputIndex: Number(vout), metadata: true }, undefined)
    await this.validate()
  }

  private async append(asked: AskedNode, parent: Node | undefined): Promise<void> {
    const id = `${asked.txid}.${asked.outputIndex}`
    if (this.nodes.has(id)) return
    const node = await this.ask(asked)
    const isInput = parent?.transaction.inputs.some(
      ({ sourceTXID, sourceOutputIndex }) => `${sourceTXID}.${sourceOutputIndex}` === id,
    )
    if (isInput === false) throw new Error('the child is not an input of its parent')
    if (this.nodes.size >= MAX_NODES) throw new Error('too many nodes')
    this.nodes.set(id, node)
    this.children.set(id, [])
    if (parent !== undefined) this.children.get(`${parent.txid}.${parent.outputIndex}`)?.push(id)
    for (const needed of await this.neededBy(node)) await this.append({ ...needed, metadata: false }, node)
  }

  private async neededBy({
    transaction,
    outputIndex,
    metadata,
  }: Node): Promise<{ txid: string; outputIndex: number }[]> {
    if (transaction.merklePath === undefined)
      return transaction.inputs.map(({ sourceTXID = '', sourceOutputIndex }) => ({
        txid: sourceTXID,
        outputIndex: sourceOutputIndex,
      }))
    const beef = transaction.toBEEF()
    // As its own conversion does with text that has no encoding: the characters, and not what they stand for.
    const offChain = metadata === undefined ? undefined : Array.from(utf8(metadata))
    const dry = { dryRun: true }
    const judged = await this.manager.identifyAdmissibleOutputs(beef, [], offChain, 'historical-tx', dry)
    if (judged.outputsToAdmit.includes(outputIndex)) return []
    // It logs an error, and goes on without.
    return (await this.manager.identifyNeededInputs?.(beef).catch(() => undefined)) ?? []
  }

  private async validate(): Promise<void> {
    const coins = new Set<string>()
    const spent = new Set<string>()
    for (const { transaction } of this.oldestFirst()) {
      const inputs = transaction.inputs.map((each) => `${each.sourceTXID}.${each.sourceOutputIndex}`)
      const previous = inputs.flatMap((input, index) => (coins.has(input) ? [index] : []))
      if (inputs.some((input) => spent.has(input))) throw new Error('a conflicting spend')
      const { outputsToAdmit } = await this.manager.identifyAdmissibleOutputs(
        this.beefOf(transaction),
        previous,
        undefined,
        'historical-tx',
        { dryRun: true },
      )
      for (const input of inputs) {
        spent.add(input)
        coins.delete(input)
      }
      for (const vout of outputsToAdmit) coins.add(`${transaction.id('hex')}.${vout}`)
    }
    if (!coins.has(this.graphID)) throw new Error(`the graph of ${this.graphID} does not admit its root`)
  }

  private oldestFirst(id = this.graphID, done = new Set<string>()): Node[] {
    const node = this.nodes.get(id)
    if (node === undefined || done.has(node.txid)) return []
    const before = (this.children.get(id) ?? []).flatMap((child) => this.oldestFirst(child, done))
    done.add(node.txid)
    return [...before, node]
  }

  private beefOf(transaction: Transaction): number[] {
    if (transaction.merklePath === undefined)
      for (const input of transaction.inputs) {
        const source = this.nodes.get(`${input.sourceTXID}.${input.sourceOutputIndex}`)
        if (source === undefined) throw new Error('an input of an unproven transaction is missing')
        this.beefOf(source.transaction)
        input.sourceTransaction = source.transaction
      }
    return transaction.toBEEF()
  }
}

function requireInteger(value: unknown, most: number): void {
  if (!Number.isSafeInteger(value) || Number(value) < 0 || Number(value) > most)
    throw new Error(`no whole number: ${value}`)
}

function requireHex(value: unknown, { most, isEmpty }: { most: number; isEmpty: boolean }): void {
  if (typeof value !== 'string' || value.length > 2 * most || (!isEmpty && value === ''))
    throw new Error('no bounded hex')
  if (value !== '' && !/^(?:[0-9a-fA-F]{2})+$/.test(value)) throw new Error(`no hex of even length: ${value}`)
}
