import { mintedBeside, nodeHistory } from '../../../backend/src/graph/provenance.js'
import { listedBeef } from '../../../backend/src/graph/write-beef.js'
import { joinBytes } from '../../../backend/src/protocol/bytes.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import type { MineIndex, ShownNode } from '../../mining/mine-index.js'
import { MiningError, NodeMovedError } from '../../mining/mining-error.js'
import type { LiveNode } from '../../mining/server-answers.js'
import type { Node } from '../../server/node.js'
import { ConflictError } from '../../server/submission/errors.js'

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

  async showNode(name: string): Promise<ShownNode | undefined> {
    const node = await this.liveNode(name)
    return node && { outpoint: node.outpoint, beef: await this.historyOf(node) }
  }

  async showName(name: string): Promise<Uint8Array | undefined> {
    const origin = await this.node.graph.names.originOf(name)
    return origin && (await this.historyOf(mintedBeside(origin, name)))
  }

  private async historyOf(node: LiveNode): Promise<Uint8Array> {
    const { graph: store } = this.node
    const { transactions } = await nodeHistory(node, { store, genesis: this.genesis })
    const beef: Uint8Array[] = []
    for await (const chunk of (await listedBeef({ transactions, store: store.transactions })).bytes())
      beef.push(chunk)
    return joinBytes(beef)
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
