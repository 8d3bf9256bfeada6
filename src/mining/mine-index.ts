import { Transaction } from '@bsv/sdk'
import * as z from 'zod'
import { formatOutpoint, type Outpoint, readOutpoint } from '../../backend/src/protocol/outpoint.js'
import { LOOKUP_SERVICES, PROFILES, TOPICS } from '../../backend/src/protocol/profile.js'
import { askJson, type JsonAnswer } from './ask-json.js'
import { MiningError, NodeMovedError } from './mining-error.js'

/** A live node as an index names it. */
export interface LiveNode {
  /** The prefix that it stands for. */
  domain: string
  outpoint: Outpoint
}

/** What mining asks of whoever follows the tree. */
export interface MineIndex {
  /** The live node of the longest mined prefix of a name; undefined where the name is taken. */
  liveNode(name: string): Promise<LiveNode | undefined>
  /**
   * The transaction that holds a live node, with its proof or with its ancestors.
   *
   * @throws NodeMovedError where the node is not live any more.
   */
  nodeTransaction(node: LiveNode): Promise<Transaction>
  /**
   * Tells of a mint.
   *
   * @throws NodeMovedError where another mint has spent the node.
   */
  submit(mint: { beef: Uint8Array; txid: string; name: string }): Promise<void>
}

/** How long an answer may take, in milliseconds: a submission waits for those before it. */
const PATIENCE = 60_000

const node = z.object({ domain: z.string(), outpoint: z.string() })
const refusal = z.object({ error: z.string(), code: z.string() })
const steak = z.record(z.string(), z.object({ outputsToAdmit: z.array(z.number()) }))
const origin = z.object({ outpoint: z.string() })
const outputs = z.object({
  outputs: z.array(z.object({ beef: z.array(z.number()), outputIndex: z.number() })),
})

/** A minetree server over HTTP. Its word is taken: a false one costs a search and a fee, no name. */
export class HttpMineIndex implements MineIndex {
  private readonly namesUrl: string

  /** @param url Where the server listens, without a slash at the end. */
  constructor(private readonly url: string) {
    this.namesUrl = `${url}${PROFILES.local.namesPrefixes[0]}`
  }

  async liveNode(name: string): Promise<LiveNode | undefined> {
    const { status, body } = await this.ask(`${this.namesUrl}/mine/${name}`)
    const refused = refusal.safeParse(body)
    if (status === 404 && refused.data?.code === 'TAKEN') return undefined
    if (refused.success) throw this.unexpected(status, body)
    const { domain, outpoint: text } = this.read(node, { status, body })
    const outpoint = readOutpoint(text)
    if (outpoint === undefined) throw this.unexpected(status, body)
    return { domain, outpoint }
  }

  async nodeTransaction({ domain, outpoint }: LiveNode): Promise<Transaction> {
    const answer = await this.ask(`${this.url}/lookup`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ service: LOOKUP_SERVICES.names, query: { node: domain } }),
    })
    const [output] = this.read(outputs, answer).outputs
    const transaction = output && this.readBeef(output.beef)
    const found = transaction && { txid: transaction.id('hex'), vout: output.outputIndex }
    if (found === undefined || formatOutpoint(found) !== formatOutpoint(outpoint))
      throw new NodeMovedError(
        `the node of ${JSON.stringify(domain)} is no longer ${formatOutpoint(outpoint)}`,
      )
    return transaction as Transaction
  }

  async submit({ beef, txid, name }: { beef: Uint8Array; txid: string; name: string }): Promise<void> {
    const topics = [TOPICS.names, TOPICS.ordinals]
    const { status, body } = await this.ask(`${this.url}/submit`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/octet-stream', 'X-Topics': JSON.stringify(topics) },
      body: Uint8Array.from(beef),
    })
    const refused = refusal.safeParse(body)
    if (status === 409) throw new NodeMovedError(refused.data?.error ?? 'another mint has spent the node')
    if (status !== 200) throw this.unexpected(status, body)
    // A mint that is known already admits nothing anew; one that is none, nothing at all.
    const answer = await this.ask(`${this.namesUrl}/origin/${name}`)
    if (origin.safeParse(answer.body).data?.outpoint === `${txid}_2`) return
    // A mint with a proof is kept, though another one counts.
    const admitted = steak.safeParse(body).data?.[TOPICS.names]?.outputsToAdmit ?? []
    if (admitted.length > 0) throw new NodeMovedError('another mint has spent the node')
    throw new MiningError(
      'NOT_ADMITTED',
      `${this.url} took ${txid}, but not as the mint of ${name}: its log says why`,
    )
  }

  private readBeef(beef: number[]): Transaction {
    try {
      return Transaction.fromBEEF(beef)
    } catch (cause) {
      throw new MiningError('BAD_INDEX', `${this.url} gave no BEEF of the node`, { cause })
    }
  }

  private read<Value>(schema: z.ZodType<Value>, answer: JsonAnswer): Value {
    const parsed = schema.safeParse(answer.body)
    if (!parsed.success) throw this.unexpected(answer.status, answer.body)
    return parsed.data
  }

  private unexpected(status: number, body: unknown): MiningError {
    const refused = refusal.safeParse(body)
    const said = refused.success ? `${refused.data.code}: ${refused.data.error}` : 'and not as minetree does'
    return new MiningError('BAD_INDEX', `${this.url} answers ${status}, ${said}`)
  }

  private ask(url: string, init?: RequestInit): Promise<JsonAnswer> {
    return askJson({ url, server: this.url, patience: PATIENCE, ...(init && { init }) })
  }
}
