import { listedBeef } from '../../../backend/src/graph/write-beef.js'
import { joinBytes } from '../../../backend/src/protocol/bytes.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import { nodeHistory, originHistory, type Part } from '../../../backend/src/read/provenance.js'
import { EVIDENCE_BYTES, type KnownNodes, type MineIndex, type Shown } from '../../mining/mine-index.js'
import { MiningError, NodeMovedError } from '../../mining/mining-error.js'
import type { LiveNode } from '../../mining/server-answers.js'
import type { Node } from '../../server/node.js'
import { ConflictError } from '../../server/writer/errors.js'

/** The tree that this process follows, for mining in it without HTTP. */
export class OwnIndex implements MineIndex {
  constructor(
    private readonly node: Pick<Node, 'graph' | 'overlay'>,
    private readonly genesis: Outpoint,
  ) {}

  async liveNode(name: string): Promise<LiveNode | undefined> {
    const found = await this.node.graph.names.longestNode(name)
    if (found === undefined) throw new MiningError('BAD_INDEX', 'the store holds no genesis to mine from')
    return found.domain === name ? undefined : found
  }

  async showNode(name: string, known?: KnownNodes): Promise<Shown | undefined> {
    const node = await this.liveNode(name)
    return node && (await this.shown(nodeHistory(node, this.part(known))))
  }

  async showName(name: string, known?: KnownNodes): Promise<Shown | undefined> {
    const origin = await this.node.graph.names.originOf(name)
    return origin && (await this.shown(originHistory({ name, origin }, this.part(known))))
  }

  private part(known: KnownNodes | undefined): Parameters<typeof nodeHistory>[1] {
    return { store: this.node.graph, genesis: this.genesis, known, maxBytes: EVIDENCE_BYTES }
  }

  private async shown(reading: Promise<Part>): Promise<Shown> {
    const { graph: store } = this.node
    const { end: outpoint, transactions } = await reading
    const beef: Uint8Array[] = []
    for await (const chunk of (await listedBeef({ transactions, store: store.transactions })).bytes())
      beef.push(chunk)
    return { outpoint, beef: joinBytes(beef) }
  }

  async submit({ beef, txid, name }: { beef: Uint8Array; txid: string; name: string }): Promise<void> {
    try {
      await this.node.overlay.engine.submit({ beef, topics: [TOPICS.names, TOPICS.ordinals] })
    } catch (cause) {
      if (!(cause instanceof ConflictError)) throw cause
      throw new NodeMovedError(cause.message, { cause })
    }
    if ((await this.node.graph.names.originOf(name))?.txid !== txid)
      throw new MiningError('NOT_ADMITTED', `${txid} was not admitted as the mint of ${name}: see the log`)
  }
}
