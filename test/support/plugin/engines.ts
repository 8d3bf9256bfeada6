import { AsyncLocalStorage } from 'node:async_hooks'
import { Engine, type LookupService, type Output, type Storage, type TopicManager } from '@bsv/overlay'
import { type AdmittanceInstructions, type STEAK, type TaggedBEEF, Transaction } from '@bsv/sdk'

/**
 * The engines that operators run. 0.4.6 is the real one; the others are in no registry that tests may ask. LARS installs 0.5.4,
 * from which 0.6.0 differs in one thing: it does not broadcast what is mined.
 */
export const ENGINE_VERSIONS = ['0.4.6', '0.5.4', '2.0.2', '2.6.3'] as const
export type EngineVersion = (typeof ENGINE_VERSIONS)[number]

/** How a transaction comes to an engine from 0.5 on. */
export type SubmitMode = 'historical-tx' | 'current-tx' | 'historical-tx-no-spv'

/** A topic manager as engines from 0.5 on call it: 0.4.6 passes no mode, and those before 2.6 no context. */
interface ModalTopicManager extends Omit<TopicManager, 'identifyAdmissibleOutputs'> {
  identifyAdmissibleOutputs(
    beef: number[],
    previousCoins: number[],
    offChainValues: number[] | undefined,
    mode: SubmitMode,
    context?: { dryRun: boolean },
  ): Promise<AdmittanceInstructions>
}

/** What an engine finds out about a transaction for one topic, before it writes anything. */
interface Judgement {
  topic: string
  /** It neither writes nor notifies: a duplicate, or one that it was not told about. */
  isSkipped: boolean
  previousCoins: number[]
  previousOutputs: Output[]
  instructions: AdmittanceInstructions
}

const NOTHING: AdmittanceInstructions = { outputsToAdmit: [], coinsToRetain: [] }

/**
 * Behaves as the engine from 0.5 on: it judges for all topics first, answers, and then writes. A topic manager that throws
 * keeps 2.0.2 from marking the transaction as applied; 0.5.4 marks it all the same. 2.6.3 asks in a dry run first, and lists as
 * previous coins the unspent ones only. From 0.6 on it does not verify again what comes of a peer's graph, of which its GASP has
 * verified the last transaction.
 */
export class PhasedEngine extends Engine {
  version: EngineVersion = '2.0.2'

  override async submit(
    { beef, topics }: TaggedBEEF,
    onSteakReady?: (steak: STEAK) => void,
    mode: SubmitMode = 'current-tx',
    offChainValues?: number[],
  ): Promise<STEAK> {
    const unsupported = topics.find((topic) => this.managers[topic] === undefined)
    if (unsupported !== undefined) throw new Error(`This server does not support this topic: ${unsupported}`)
    const transaction = Transaction.fromBEEF(beef)
    // The GASP of 0.4.6 submits so; nobody else does here.
    if (mode === 'historical-tx' && this.version !== '0.5.4') mode = 'historical-tx-no-spv'
    if (mode !== 'historical-tx-no-spv' && !(await transaction.verify(this.chainTracker)))
      throw new Error('Unable to verify SPV information.')
    const judgements = await Promise.all(
      topics.map((topic) => this.judge({ topic, beef, transaction, mode, offChainValues })),
    )
    const steak: STEAK = Object.fromEntries(
      judgements.map(({ topic, instructions }) => [topic, instructions] as const),
    )
    if (mode === 'current-tx' && this.broadcaster !== undefined) {
      const response = await this.broadcaster.broadcast(transaction as never)
      if (response.status === 'error' && this.throwOnBroadcastFailure) throw new Error(response.description)
    }
    onSteakReady?.(steak)
    const open = judgements.filter(({ isSkipped }) => !isSkipped)
    await Promise.all(open.map((judgement) => this.notifySpends(judgement, transaction)))
    for (const judgement of open) await this.write(judgement, { transaction, beef })
    return steak
  }

  private async judge(asked: {
    topic: string
    beef: number[]
    transaction: Transaction
    mode: SubmitMode
    offChainValues: number[] | undefined
  }): Promise<Judgement> {
    const { topic, beef, transaction, mode, offChainValues } = asked
    const txid = transaction.id('hex')
    const skipped = { topic, isSkipped: true, previousCoins: [], previousOutputs: [], instructions: NOTHING }
    if (await this.storage.doesAppliedTransactionExist({ txid, topic })) return skipped
    const previousCoins: number[] = []
    const previousOutputs: Output[] = []
    const isNewest = this.version === '2.6.3'
    for (const [input, { sourceTXID = '', sourceOutputIndex }] of transaction.inputs.entries()) {
      const output = await this.storage.findOutput(sourceTXID, sourceOutputIndex, topic)
      if (output === null || (isNewest && output.spent)) continue
      previousCoins.push(input)
      previousOutputs.push(output)
    }
    const manager = this.managers[topic] as unknown as ModalTopicManager
    const judgement = { topic, isSkipped: false, previousCoins, previousOutputs }
    try {
      if (isNewest)
        await manager.identifyAdmissibleOutputs(beef, previousCoins, offChainValues, mode, { dryRun: true })
      const instructions = await manager.identifyAdmissibleOutputs(beef, previousCoins, offChainValues, mode)
      return { ...judgement, instructions }
    } catch {
      return this.version === '0.5.4' ? { ...judgement, instructions: NOTHING } : skipped
    }
  }

  private async notifySpends({ topic, previousOutputs }: Judgement, transaction: Transaction): Promise<void> {
    for (const { txid, outputIndex } of previousOutputs) {
      await this.storage.markUTXOAsSpent(txid, outputIndex, topic)
      for (const service of this.services()) {
        const spent = { txid, outputIndex, topic }
        const hook =
          service.spendNotificationMode === 'whole-tx'
            ? { ...spent, mode: 'whole-tx' as const, spendingAtomicBEEF: transaction.toAtomicBEEF() }
            : { ...spent, mode: 'none' as const }
        await logged(async () => await service.outputSpent?.(hook))
      }
    }
  }

  private async write(
    { topic, previousCoins, instructions }: Judgement,
    { transaction, beef }: { transaction: Transaction; beef: number[] },
  ): Promise<void> {
    const txid = transaction.id('hex')
    const outputsConsumed = previousCoins
      .filter((input) => instructions.coinsToRetain.includes(input))
      .flatMap((input) => transaction.inputs[input] ?? [])
      .map(({ sourceTXID = '', sourceOutputIndex }) => ({ txid: sourceTXID, outputIndex: sourceOutputIndex }))
    await Promise.all(
      instructions.outputsToAdmit.map(async (outputIndex) => {
        const { lockingScript, satoshis } = transaction.outputs[outputIndex] ?? {}
        if (lockingScript === undefined || satoshis === undefined) return
        await this.storage.insertOutput({
          ...{ txid, outputIndex, topic, satoshis, beef, outputsConsumed },
          ...{ outputScript: lockingScript.toBinary(), spent: false, consumedBy: [], score: Date.now() },
        })
        const admitted = { topic, outputIndex }
        for (const service of this.services())
          await logged(() =>
            service.outputAdmittedByTopic(
              service.admissionMode === 'locking-script'
                ? {
                    ...admitted,
                    mode: 'locking-script',
                    txid,
                    satoshis,
                    lockingScript: lockingScript as never,
                  }
                : { ...admitted, mode: 'whole-tx', atomicBEEF: transaction.toAtomicBEEF() },
            ),
          )
      }),
    )
    const consumedBy = instructions.outputsToAdmit.map((outputIndex) => ({ txid, outputIndex }))
    for (const { txid, outputIndex } of outputsConsumed) {
      const consumed = await this.storage.findOutput(txid, outputIndex, topic)
      if (consumed === null) continue
      const all = [...consumedBy, ...consumed.consumedBy]
      await this.storage.updateConsumedBy(txid, outputIndex, topic, all)
    }
    await this.storage.insertAppliedTransaction({ txid, topic })
  }

  /** All history that is asked for is linked to the transaction, and then cut off where it is proven. */
  override async getUTXOHistory(
    output: Output,
    selector?: Parameters<Engine['getUTXOHistory']>[1],
    depth = 0,
  ): Promise<Output | undefined> {
    if (selector === undefined) return output
    const transaction = await this.withHistory(output, selector, depth)
    return transaction && { ...output, beef: transaction.toBEEF() }
  }

  private async withHistory(
    output: Output,
    selector: NonNullable<Parameters<Engine['getUTXOHistory']>[1]>,
    depth: number,
  ): Promise<Transaction | undefined> {
    const { beef, outputIndex, outputsConsumed } = output
    if (beef === undefined) throw new Error('Output must have associated transaction BEEF!')
    const isWanted =
      typeof selector === 'number' ? depth <= selector : await selector(beef, outputIndex, depth)
    if (!isWanted) return undefined
    const transaction = Transaction.fromBEEF(beef)
    for (const consumed of outputsConsumed) {
      const { txid, outputIndex } = consumed
      const stored = await this.storage.findOutput(txid, outputIndex, undefined, undefined, true)
      const source = stored === null ? undefined : await this.withHistory(stored, selector, depth + 1)
      const input = transaction.inputs.find(
        (each) => each.sourceTXID === txid && each.sourceOutputIndex === outputIndex,
      )
      if (source !== undefined && input !== undefined) input.sourceTransaction = source
    }
    return transaction
  }

  private services(): LookupService[] {
    return Object.values(this.lookupServices)
  }
}

/** The engine logs what a lookup service throws, and goes on. */
async function logged(hook: () => Promise<void> | void): Promise<void> {
  try {
    await hook()
  } catch {
    // Where the real one logs, nobody reads.
  }
}

/**
 * A storage whose writes wait while they are held, so that what arrives meanwhile is judged without them. Real hosts answer
 * before they write, too; there it is a race.
 */
export class HeldWrites {
  /** How many outputs have been stored. */
  outputs = 0
  /** The outputs whose storing waits, as `<txid> <vout> <topic>`, until they are stored. */
  readonly waiting = new Map<string, Promise<void>>()
  /** The outputs that a submission has looked for while storing waits. */
  private readonly lookedFor = new AsyncLocalStorage<Set<string>>()
  private held: { released: Promise<void>; release: () => void } | undefined
  private isCut = false

  hold(): void {
    if (this.held !== undefined) return
    let release = (): void => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    this.held = { released, release }
  }

  release(): void {
    this.held?.release()
    this.held = undefined
  }

  /** Runs a submission: another one that looks for the same output, such as the same again, waits for nothing. */
  during<Result>(submit: () => Result): Result {
    return this.lookedFor.run(new Set(), submit)
  }

  /** From now on nothing follows the storing of an output, such as its hooks: as if the process were killed right then. */
  cutAfterOutputs(): void {
    this.isCut = true
  }

  /**
   * The same storage, but that it waits. A submission that looks a second time for an output whose storing waits finds it stored: once
   * 0.4.6 has answered, it looks again for what a transaction spends.
   */
  over(storage: Storage): Storage {
    const waits = new Set<string | symbol>(['insertOutput', 'markUTXOAsSpent', 'insertAppliedTransaction'])
    return new Proxy(storage, {
      get: (target, name) => {
        const method: unknown = Reflect.get(target, name)
        if (typeof method !== 'function') return method
        if (name === 'findOutput')
          return async (...args: unknown[]) => {
            const output = args.slice(0, 3).join(' ')
            const lookedFor = this.lookedFor.getStore()
            if (lookedFor?.has(output)) await this.waiting.get(output)
            else if (this.held !== undefined) lookedFor?.add(output)
            return await method.apply(target, args)
          }
        if (!waits.has(name)) return method.bind(target)
        const write = async (args: unknown[]): Promise<unknown> => {
          await this.held?.released
          return await method.apply(target, args)
        }
        if (name !== 'insertOutput') return async (...args: unknown[]) => await write(args)
        return async (output: Output) => {
          const key = [output.txid, output.outputIndex, output.topic].join(' ')
          const written = write([output])
          if (this.held !== undefined) {
            const stored = written.then(() => void this.waiting.delete(key))
            this.waiting.set(key, stored)
          }
          await written
          this.outputs++
          if (this.isCut) await new Promise(() => {})
        }
      },
    })
  }
}
