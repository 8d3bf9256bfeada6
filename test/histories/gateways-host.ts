import type { SightingRecord } from '../../backend/src/graph/conflict-resolution.js'
import type { ProofTracker } from '../../backend/src/index/transactions.js'
import { SharedWriter } from '../../backend/src/writer/shared-writer.js'
import { MemoryLog, type MemoryRows } from '../support/facts/memory-log.js'
import { Random } from '../support/random.js'
import type { ChainRoots } from './chain-roots.js'
import type { Proof } from './decision.js'
import { FactsHost } from './facts-host.js'
import type { Shape } from './history.js'
import { type Answer, type Differences, Host } from './host.js'
import type { Model } from './model.js'

const GATEWAYS = 3
/** Longer than any test: gateways follow when they are asked to. */
const NEVER = 2 ** 30

/** Gateways over one log as if they were one host: each request goes to any of them, and each job is done by any of them. */
export class GatewaysHost extends Host {
  private readonly random = new Random(1)
  private rows: MemoryRows = { id: '', rows: [] }
  private readonly gateways: FactsHost[]

  constructor(shape: Shape, tracker: 'tracker' | 'headers') {
    super()
    this.gateways = Array.from(
      { length: GATEWAYS },
      () =>
        new FactsHost(shape, tracker, async (folder) => {
          const writer = new SharedWriter({ folder, shared: new MemoryLog(this.rows), poll: NEVER })
          await writer.logRead
          return writer
        }),
    )
  }

  override get tracker(): ProofTracker {
    return this.any.tracker
  }

  get url(): string {
    return this.any.url
  }

  /** Starts all with an empty log. */
  async clear(chain: ChainRoots): Promise<void> {
    this.rows = { id: String(this.random.below(1e9)), rows: [] }
    for (const each of this.gateways) await each.clear(chain)
    await this.untilIdle()
  }

  override async untilIdle(): Promise<void> {
    // What one tries again because of what it hears, the others hear the next time.
    for (let round = 0; round < 2; round++) for (const each of this.gateways) await each.untilIdle()
  }

  /** What is refused waits at the gateway that refused it, and all are to know of it, as the model does: each refuses it. */
  override async submitBeef(beef: Uint8Array, topics: readonly string[]): Promise<Answer> {
    const first = this.any
    const answer = await first.submitBeef(beef, topics)
    await this.untilIdle()
    if (answer.status !== 409) return answer
    for (const each of this.gateways.filter((each) => each !== first)) {
      const { status } = await each.submitBeef(beef, topics)
      if (status !== 409) throw new Error(`another gateway answers ${status} to what one refuses`)
    }
    await this.untilIdle()
    return answer
  }

  override async chainChanged(): Promise<void> {
    await this.any.chainChanged()
    await this.untilIdle()
  }

  override async restart(): Promise<void> {
    await this.any.restart()
  }

  override async follow(): Promise<void> {
    await this.any.follow()
    await this.untilIdle()
  }

  override async sight(record: SightingRecord): Promise<boolean> {
    await this.any.sight(record)
    await this.untilIdle()
    return true
  }

  override async release(): Promise<void> {
    await this.any.release()
    await this.untilIdle()
  }

  override async fateOf(txid: string, proof: Proof): Promise<'held' | 'gone' | 'refused'> {
    return await this.any.fateOf(txid, proof)
  }

  override async storedDifferences(model: Model): Promise<Differences> {
    const found: Differences = {}
    for (const each of this.gateways) Object.assign(found, await each.storedDifferences(model))
    return found
  }

  /** Where the index of a gateway is not that which the log gives when it is derived again. */
  rebuiltDifferences(): Differences {
    return Object.assign({}, ...this.gateways.map((each) => each.rebuiltDifferences()))
  }

  async close(): Promise<void> {
    for (const each of this.gateways) await each.close()
  }

  private get any(): FactsHost {
    return this.gateways[this.random.below(GATEWAYS)] as FactsHost
  }
}
