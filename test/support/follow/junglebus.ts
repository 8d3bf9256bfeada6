import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import { serving } from '../server/connections.js'
import { type ChainView, FakeService, NOT_FOUND } from './fake-service.js'
import { answerOfTransactions } from './junglebus-protocol.js'

export type { Fault } from './fake-service.js'

/** A service that knows transactions, and speaks as JungleBus does; its answers to wrong questions are 404. */
export class JungleBusService extends FakeService<KnownRecords> {
  constructor() {
    super((path, view) => answerOfTransactions(path, view) ?? NOT_FOUND, new KnownRecords())
  }

  know(...records: TransactionRecord[]): void {
    for (const record of records) {
      this.view.known.set(record.txid, record)
      const { inputs } = readTransaction(record.raw, { txid: record.txid })
      for (const outpoint of inputs) this.say(outpoint, record.txid)
    }
  }

  forget(txid: string): void {
    const { known, spenders } = this.view
    known.delete(txid)
    for (const [outpoint, spender] of spenders) if (spender === txid) spenders.delete(outpoint)
  }

  /** Names a spender, whether it spends or not. */
  say(outpoint: Outpoint, spender: string): void {
    this.view.spenders.set(formatOutpoint(outpoint), spender)
  }
}

class KnownRecords implements ChainView {
  readonly known = new Map<string, TransactionRecord>()
  readonly spenders = new Map<string, string>()

  transaction(txid: string): TransactionRecord | undefined {
    return this.known.get(txid)
  }

  spenderOf(outpoint: Outpoint): string | undefined {
    return this.spenders.get(formatOutpoint(outpoint))
  }

  transactions(): Iterable<TransactionRecord> {
    return this.known.values()
  }
}

/** Such a service for as long as the test runs. */
export async function startJungleBus(): Promise<{
  url: string
  service: JungleBusService
  stop(): Promise<void>
}> {
  const service = new JungleBusService()
  const { url, close } = await serving(service.listener)
  return { url, service, stop: close }
}
