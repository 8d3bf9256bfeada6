import type { Output, Storage } from '@bsv/overlay'
import { assembleBeef } from '../../backend/src/graph/assemble-beef.js'
import type { GraphStore, GraphWriter } from '../../backend/src/graph/graph-store.js'
import { readBeef } from '../../backend/src/graph/read-beef.js'
import { type AdmissionRecord, graphRecords } from '../../backend/src/graph/records.js'
import { admittedTransactions } from '../../backend/src/graph/transaction-records.js'
import type { Outpoint } from '../../backend/src/protocol/outpoint.js'
import { readTransaction } from '../../backend/src/protocol/transaction.js'

/**
 * The engine's storage over the tables of the admitted graph (`spec/overlay.md`, gaps 7, 9 and 10): a
 * transaction is kept once, BEEF is put together when asked for, and what spends what is read off the spends
 * instead of being told a second time.
 */
export class EngineStorage implements Storage {
  /** What was found while a submission has its turn: all that it writes is written at its end. */
  private found: Map<string, Promise<Output | null>> | undefined

  constructor(
    private readonly graph: GraphStore,
    private readonly writer: GraphWriter,
  ) {}

  /** Does the engine's part of a submission, which asks for the same outputs several times. */
  async during<Result>(work: () => Promise<Result>): Promise<Result> {
    this.found = new Map()
    try {
      return await work()
    } finally {
      this.found = undefined
    }
  }

  async insertOutput({ txid, outputIndex, topic, score }: Output): Promise<void> {
    const admission = { topic, outpoint: { txid, vout: outputIndex }, score: score ?? 0 }
    // Only what admits something is done; what admits nothing may be sent again when its parent has come.
    await this.writer.record(graphRecords({ admissions: [admission], applied: [{ topic, txid }] }))
  }

  async insertAppliedTransaction(): Promise<void> {
    // Told by insertOutput, with the first output admitted.
  }

  async doesAppliedTransactionExist({ txid, topic }: { txid: string; topic: string }): Promise<boolean> {
    return await this.graph.isApplied(topic, txid)
  }

  async findOutput(
    txid: string,
    outputIndex: number,
    topic?: string,
    spent?: boolean,
    includeBEEF = false,
  ): Promise<Output | null> {
    const key = `${txid}_${outputIndex} ${topic} ${spent} ${includeBEEF}`
    const known = this.found?.get(key)
    if (known !== undefined) return await known
    const output = this.readOutput({ txid, vout: outputIndex }, { topic, spent, includeBEEF })
    this.found?.set(key, output)
    return await output
  }

  private async readOutput(
    outpoint: Outpoint,
    wanted: { topic: string | undefined; spent: boolean | undefined; includeBEEF: boolean },
  ): Promise<Output | null> {
    const { topic, spent, includeBEEF } = wanted
    const admissions = await this.graph.admissionsOf(outpoint)
    const admission = admissions.find((each) => topic === undefined || each.topic === topic)
    const [output] = admission === undefined ? [] : await this.outputs([admission], includeBEEF)
    if (output === undefined || (spent !== undefined && output.spent !== spent)) return null
    return output
  }

  async findOutputsForTransaction(txid: string, includeBEEF = false): Promise<Output[]> {
    return await this.outputs(await this.graph.admissionsOfTransaction(txid), includeBEEF)
  }

  async findUTXOsForTopic(topic: string, since = 0, limit?: number, includeBEEF = false): Promise<Output[]> {
    const unspent = await this.graph.unspentOfTopic({ topic, since, ...(limit !== undefined && { limit }) })
    return await this.outputs(unspent, includeBEEF)
  }

  /** A proof that came for a transaction. The engine does not check it: whoever calls it with a proof has to. */
  async updateTransactionBEEF(_txid: string, beef: number[]): Promise<void> {
    await this.writer.record(graphRecords({ transactions: admittedTransactions(readBeef(beef)) }))
  }

  async updateOutputBlockHeight(): Promise<void> {
    // The height is kept with the proof.
  }

  async markUTXOAsSpent(): Promise<void> {
    // A spend counts when its transaction does; then it is among the transaction's records.
  }

  async updateConsumedBy(): Promise<void> {
    // Read off the spends.
  }

  async deleteOutput(txid: string, outputIndex: number, topic: string): Promise<void> {
    throw new Error(
      `asked to drop ${txid}_${outputIndex} from ${topic}, but this host's topics retain every coin`,
    )
  }

  async updateLastInteraction(host: string, topic: string, since: number): Promise<void> {
    await this.graph.setLastInteraction(host, topic, since)
  }

  async getLastInteraction(host: string, topic: string): Promise<number> {
    return await this.graph.lastInteraction(host, topic)
  }

  private async outputs(admissions: AdmissionRecord[], includeBEEF: boolean): Promise<Output[]> {
    const outputs = await Promise.all(admissions.map((admission) => this.outputOf(admission, includeBEEF)))
    return outputs.filter((output) => output !== undefined)
  }

  private async outputOf(
    { topic, outpoint, score }: AdmissionRecord,
    includeBEEF: boolean,
  ): Promise<Output | undefined> {
    const { txid, vout } = outpoint
    const record = await this.graph.transaction(txid)
    const transaction = record && readTransaction(record.raw, { txid })
    const output = transaction?.outputs[vout]
    if (record === undefined || transaction === undefined || output === undefined) return undefined
    const spender = await this.graph.spenderOf(outpoint)
    const beef = includeBEEF ? await assembleBeef([txid], this.graph) : undefined
    const held = async (txids: string[]): Promise<{ txid: string; outputIndex: number }[]> =>
      (await Promise.all(txids.map((each) => this.graph.admissionsOfTransaction(each))))
        .flat()
        .filter((each) => each.topic === topic)
        .map((each) => ({ txid: each.outpoint.txid, outputIndex: each.outpoint.vout }))
    const sources = [...new Set(transaction.inputs.map((input) => input.txid))]
    const spentHere = new Set(transaction.inputs.map((input) => `${input.txid}_${input.vout}`))
    return {
      txid,
      outputIndex: vout,
      get outputScript() {
        return Array.from(output.lockingScript)
      },
      satoshis: output.satoshis,
      topic,
      spent: spender !== undefined,
      consumedBy: await held(spender === undefined ? [] : [spender]),
      outputsConsumed: (await held(sources)).filter((each) =>
        spentHere.has(`${each.txid}_${each.outputIndex}`),
      ),
      score,
      ...(beef && { beef: Array.from(beef) }),
      ...(record.proof && { blockHeight: record.proof.height }),
    }
  }
}
