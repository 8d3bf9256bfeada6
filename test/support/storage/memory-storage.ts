import type { Output, Storage } from '@bsv/overlay'

type Applied = Parameters<Storage['insertAppliedTransaction']>[0]

/**
 * What the engine's own storage on SQL keeps, in memory: an output a topic and outpoint, with the BEEF it came in, and
 * which transactions are applied. Nothing is one step, and nothing is undone. (Its own migrations do not run on SQLite.)
 */
export class MemoryStorage implements Storage {
  private readonly outputs: Output[] = []
  private readonly applied: Applied[] = []
  private readonly interactions = new Map<string, number>()

  async insertOutput(output: Output): Promise<void> {
    this.outputs.push({ ...output })
  }

  async findOutput(
    txid: string,
    outputIndex: number,
    topic?: string,
    spent?: boolean,
    includeBEEF = false,
  ): Promise<Output | null> {
    const found = this.outputs.find(
      (output) =>
        output.txid === txid &&
        output.outputIndex === outputIndex &&
        (topic === undefined || output.topic === topic) &&
        (spent === undefined || output.spent === spent),
    )
    return found === undefined ? null : shown(found, includeBEEF)
  }

  async findOutputsForTransaction(txid: string, includeBEEF = false): Promise<Output[]> {
    return this.outputs.filter((output) => output.txid === txid).map((output) => shown(output, includeBEEF))
  }

  async findUTXOsForTopic(topic: string, since = 0, limit?: number, includeBEEF = false): Promise<Output[]> {
    return this.outputs
      .filter((output) => output.topic === topic && !output.spent && (output.score ?? 0) >= since)
      .slice(0, limit)
      .map((output) => shown(output, includeBEEF))
  }

  async deleteOutput(txid: string, outputIndex: number, topic: string): Promise<void> {
    const at = this.outputs.findIndex(
      (output) => output.txid === txid && output.outputIndex === outputIndex && output.topic === topic,
    )
    if (at >= 0) this.outputs.splice(at, 1)
  }

  async markUTXOAsSpent(txid: string, outputIndex: number, topic: string): Promise<void> {
    this.change({ txid, outputIndex, topic }, { spent: true })
  }

  async updateConsumedBy(
    txid: string,
    outputIndex: number,
    topic: string,
    consumedBy: Output['consumedBy'],
  ): Promise<void> {
    this.change({ txid, outputIndex, topic }, { consumedBy })
  }

  async updateTransactionBEEF(txid: string, beef: number[]): Promise<void> {
    for (const output of this.outputs) if (output.txid === txid) output.beef = beef
  }

  async insertAppliedTransaction(applied: Applied): Promise<void> {
    this.applied.push(applied)
  }

  async doesAppliedTransactionExist({ txid, topic }: Applied): Promise<boolean> {
    return this.applied.some((applied) => applied.txid === txid && applied.topic === topic)
  }

  async updateLastInteraction(host: string, topic: string, since: number): Promise<void> {
    this.interactions.set(`${host} ${topic}`, since)
  }

  async getLastInteraction(host: string, topic: string): Promise<number> {
    return this.interactions.get(`${host} ${topic}`) ?? 0
  }

  private change(which: Pick<Output, 'txid' | 'outputIndex' | 'topic'>, change: Partial<Output>): void {
    for (const output of this.outputs) {
      const { txid, outputIndex, topic } = which
      if (output.txid === txid && output.outputIndex === outputIndex && output.topic === topic)
        Object.assign(output, change)
    }
  }
}

function shown({ beef, ...output }: Output, includeBEEF: boolean): Output {
  return { ...output, ...(includeBEEF && beef && { beef }) }
}
