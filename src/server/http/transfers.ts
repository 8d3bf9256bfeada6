import type { Request } from 'express'
import { AnswerError } from '../../gateway/http/errors.js'
import type { Upload } from '../../gateway/http/request-body.js'
import type { Limits } from '../config/limits.js'

/** The bytes that one transfer keeps in memory. */
class Transfer implements Upload {
  private readonly leaving = new AbortController()
  readonly signal: AbortSignal = this.leaving.signal
  bytes = 0

  constructor(
    private readonly transfers: Transfers,
    readonly client: string,
  ) {}

  hold(bytes: number): void {
    this.transfers.add(this, bytes)
  }

  end(): void {
    this.transfers.remove(this)
  }

  giveUp(): void {
    this.transfers.remove(this)
    this.leaving.abort(new AnswerError('NOT_READY', 'too many bytes are being uploaded; try again'))
  }
}

export type { Transfer }

/**
 * Limits the memory that is held at the pace of clients, in total and per client: bodies being received, and answers waiting to be
 * read. Over the limit, the largest transfer of the client with the most bytes is abandoned. So clients that send much and read
 * slowly compete only with each other, and short transfers get through. A single transfer is always accepted.
 */
export class Transfers {
  private bytes = 0
  private count = 0
  private readonly clients = new Map<string, { bytes: number; transfers: Set<Transfer> }>()

  constructor(
    private readonly options: Pick<Limits, 'maxUploadBytes' | 'maxClientUploadBytes'> & {
      clientOf: (request: Request) => string
    },
  ) {}

  /** The bytes of all transfers. */
  get held(): number {
    return this.bytes
  }

  begin(request: Request): Transfer {
    return new Transfer(this, this.options.clientOf(request))
  }

  /** @param bytes Negative if some are no longer held. */
  add(transfer: Transfer, bytes: number): void {
    if (transfer.signal.aborted) return
    const client = this.clients.get(transfer.client) ?? { bytes: 0, transfers: new Set() }
    this.clients.set(transfer.client, client)
    if (!client.transfers.has(transfer)) this.count++
    client.transfers.add(transfer)
    transfer.bytes += bytes
    client.bytes += bytes
    this.bytes += bytes
    const { maxUploadBytes, maxClientUploadBytes } = this.options
    while (client.bytes > maxClientUploadBytes && client.transfers.size > 1)
      largest(client.transfers).giveUp()
    while (this.bytes > maxUploadBytes && this.count > 1)
      largest(largest(this.clients.values()).transfers).giveUp()
  }

  /** May be called repeatedly. */
  remove(transfer: Transfer): void {
    const client = this.clients.get(transfer.client)
    if (!client?.transfers.delete(transfer)) return
    this.count--
    client.bytes -= transfer.bytes
    this.bytes -= transfer.bytes
    if (client.transfers.size === 0) this.clients.delete(transfer.client)
  }
}

/** The largest of a few: there are at most as many as connections, and this runs only over the limit. */
function largest<Held extends { bytes: number }>(held: Iterable<Held>): Held {
  const [first, ...others] = held
  if (first === undefined) throw new RangeError('there are no transfers')
  return others.reduce((most, each) => (each.bytes > most.bytes ? each : most), first)
}
