import * as z from 'zod/mini'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { LOOKUP_SERVICES, PROFILES, TOPICS } from '../../backend/src/protocol/profile.js'
import { serverUrl } from '../client/arguments.js'
import type { FetchedAnswer } from '../client/bounded-fetch.js'
import { readAggregate } from '../client/lookup-source.js'
import { MiningError, NodeMovedError } from './mining-error.js'
import {
  ANSWER_TIMEOUT,
  askJson,
  askLiveNode,
  askServer,
  type LiveNode,
  quote,
  refusalOf,
  submitBeef,
  unexpectedAnswer,
} from './server-answers.js'

/** An output with its evidence, not verified yet: a BEEF of all mints that lead to it, from the genesis or from a known node. */
export interface Shown {
  outpoint: Outpoint
  beef: Uint8Array
}

/** Nodes that the caller has verified: evidence may begin there. */
export type KnownNodes = readonly Outpoint[]

/**
 * The questions of a miner to an index of the tree. Every answer is only a claim: a node is verified before anything is searched
 * or signed, and counts as spent only when the mint that spends it is shown.
 */
export type MineIndex = Pick<HttpMineIndex, 'liveNode' | 'showNode' | 'showName' | 'submit'>

/** Longer than for other answers, because submissions are queued. */
const SUBMIT_TIMEOUT = 50_000
/** How much evidence an index should show at once, in bytes: about 400 mints of the live tree. */
export const EVIDENCE_BYTES = 8 * 1024 * 1024
/**
 * The longest evidence that is read, in bytes: room for one mint of the longest that servers take by default, 72 MiB, with its
 * proof.
 */
export const MAX_EVIDENCE_BYTES = 80 * 1024 * 1024

const origin = z.object({ outpoint: z.string() })

/** A minetree server over HTTP. */
export class HttpMineIndex implements MineIndex {
  private readonly url: string

  /**
   * @param options.url The URL of the server.
   * @param options.signal Cancels all requests.
   */
  constructor(private readonly options: { url: string; signal?: AbortSignal }) {
    this.url = serverUrl(options.url, 'url')
  }

  /**
   * The live node of the longest mined prefix of a name; undefined if the name is taken.
   *
   * @param options.unseen Whether to count mints that the network is not known to have.
   */
  async liveNode(name: string, { unseen }: { unseen?: boolean } = {}): Promise<LiveNode | undefined> {
    return await askLiveNode({ ...this.options, url: this.url, name, unseen })
  }

  /**
   * The same node with its evidence, or an earlier node on the way if the evidence is long: strangers decide how many mints there
   * are, and how large. Undefined if the name is taken.
   */
  async showNode(name: string, known?: KnownNodes): Promise<Shown | undefined> {
    return await this.evidence({ mine: name }, known)
  }

  /**
   * The output in which a name was minted, or an earlier name on the way, with its evidence. Undefined if the index does not know
   * the name.
   */
  async showName(name: string, known?: KnownNodes): Promise<Shown | undefined> {
    return await this.evidence({ origin: name }, known)
  }

  private async evidence(
    asked: { mine: string } | { origin: string },
    known: KnownNodes = [],
  ): Promise<Shown | undefined> {
    const query = {
      ...asked,
      history: true,
      maxBytes: EVIDENCE_BYTES,
      ...(known.length > 0 && { known: known.map(formatOutpoint) }),
    }
    const answer = await askServer({
      ...this.options,
      url: `${this.url}/lookup`,
      timeout: ANSWER_TIMEOUT,
      maxBytes: MAX_EVIDENCE_BYTES,
      init: {
        method: 'POST',
        // Binary: JSON would be three times as long.
        headers: {
          'Content-Type': 'application/json',
          'X-Aggregation': 'yes',
          Accept: 'application/octet-stream',
        },
        body: JSON.stringify({ service: LOOKUP_SERVICES.names, query }),
      },
    })
    if (answer.status !== 200 || answer.contentType !== 'application/octet-stream')
      throw unexpectedAnswer(this.url, { status: answer.status, body: undefined })
    const [output] = this.outputsOf(answer)
    return output && { outpoint: { txid: output.txid ?? '', vout: output.vout }, beef: output.beef }
  }

  /** Submits a mint. @throws NodeMovedError if the index says that another mint has spent the node. */
  async submit({ beef, txid, name }: { beef: Uint8Array; txid: string; name: string }): Promise<void> {
    const topics = [TOPICS.names, TOPICS.ordinals]
    const { status, body, admitted } = await submitBeef({
      ...{ ...this.options, url: this.url, timeout: SUBMIT_TIMEOUT, beef, topics },
    })
    if (status === 409) {
      const { error = 'another mint has spent the node', txid: by } = refusalOf(body) ?? {}
      throw new NodeMovedError(quote(error), { by })
    }
    if (status !== 200) throw unexpectedAnswer(this.url, { status, body })
    // A known mint admits nothing new, but neither does a transaction that is no mint: ask for the origin.
    const url = `${this.url}${PROFILES.local.namesPrefixes[0]}/origin/${name}`
    const answer = await askJson({ ...this.options, url, timeout: ANSWER_TIMEOUT })
    if (origin.safeParse(answer.body).data?.outpoint === `${txid}_2`) return
    // A proven mint is stored even if another one counts.
    if (admitted?.[TOPICS.names]?.outputsToAdmit.length)
      throw new NodeMovedError('another mint has spent the node')
    throw new MiningError(
      'NOT_ADMITTED',
      `${this.url} accepted ${txid}, but not as the mint of ${name}: see its log`,
    )
  }

  private outputsOf(answer: FetchedAnswer): ReturnType<typeof readAggregate> {
    try {
      return readAggregate(this.url, answer)
    } catch (cause) {
      throw new MiningError('BAD_INDEX', messageOf(cause), { cause })
    }
  }
}
