import type { Request } from 'express'
import { NotReadyError } from '../../gateway/http/errors.js'
import type { Upload } from '../../gateway/http/request-body.js'
import type { Limits } from '../config/limits.js'

/** A body was abandoned halfway, because bodies of all clients, or of its own, take too much memory together. */
class UploadsFullError extends NotReadyError {
  override readonly headers = { 'Retry-After': '5' }

  constructor() {
    super('too many bytes are being uploaded; try again')
  }
}

class HeldUpload implements Upload {
  private readonly leaving = new AbortController()
  readonly signal: AbortSignal = this.leaving.signal
  bytes = 0

  constructor(
    private readonly uploads: Uploads,
    readonly client: string,
  ) {}

  hold(bytes: number): void {
    this.uploads.add(this, bytes)
  }

  end(): void {
    this.uploads.remove(this)
  }

  giveUp(): void {
    this.uploads.remove(this)
    this.leaving.abort(new UploadsFullError())
  }
}

/**
 * Limits the memory of bodies that are being received: of all connections, and of one client. Over the limit, the largest body
 * of the client with the most bytes is abandoned. So clients that send much and slowly compete with each other only, and short
 * bodies get through. A single body is always accepted.
 */
export class Uploads {
  private bytes = 0
  private count = 0
  private readonly clients = new Map<string, { bytes: number; uploads: Set<HeldUpload> }>()

  constructor(
    private readonly options: Pick<Limits, 'maxUploadBytes' | 'maxClientUploadBytes'> & {
      clientOf: (request: Request) => string
    },
  ) {}

  /** The bytes of all of them. */
  get held(): number {
    return this.bytes
  }

  begin(request: Request): Upload {
    return new HeldUpload(this, this.options.clientOf(request))
  }

  add(upload: HeldUpload, bytes: number): void {
    if (upload.signal.aborted) return
    const client = this.clients.get(upload.client) ?? { bytes: 0, uploads: new Set() }
    this.clients.set(upload.client, client)
    if (!client.uploads.has(upload)) this.count++
    client.uploads.add(upload)
    upload.bytes += bytes
    client.bytes += bytes
    this.bytes += bytes
    const { maxUploadBytes, maxClientUploadBytes } = this.options
    while (client.bytes > maxClientUploadBytes && client.uploads.size > 1) largest(client.uploads).giveUp()
    while (this.bytes > maxUploadBytes && this.count > 1)
      largest(largest(this.clients.values()).uploads).giveUp()
  }

  /** May be called repeatedly. */
  remove(upload: HeldUpload): void {
    const client = this.clients.get(upload.client)
    if (!client?.uploads.delete(upload)) return
    this.count--
    client.bytes -= upload.bytes
    this.bytes -= upload.bytes
    if (client.uploads.size === 0) this.clients.delete(upload.client)
  }
}

/** The largest of a few: there are no more of them than connections, and it is only needed over the limit. */
function largest<Held extends { bytes: number }>(held: Iterable<Held>): Held {
  const [first, ...others] = held
  if (first === undefined) throw new RangeError('there are no uploads')
  return others.reduce((most, each) => (each.bytes > most.bytes ? each : most), first)
}
