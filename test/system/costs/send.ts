import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { HostileRequest } from './attack.js'

/** What came of a request: a status, `held` where the server was still waiting in the end, else how the connection broke. */
export type Outcome = number | string

/**
 * A stranger: it has an address of its own, and says that it comes through a proxy, so that the server counts what it asks
 * for as it does for everybody who is not on its machine.
 */
export class Stranger {
  private readonly agent: Agent
  private readonly open = new Set<ClientRequest | Socket>()
  private readonly flushed: Promise<void>[] = []

  constructor(
    private readonly url: string,
    private readonly options: { address: string; connections: number },
  ) {
    this.agent = new Agent({ keepAlive: true, maxSockets: options.connections })
  }

  /**
   * Sends a request, and reads the answer to its end without keeping it. Where the connection was an idle one that the
   * server closed just then, it is sent again, as HTTP clients do (RFC 9112 9.3.1).
   */
  async send(hostile: HostileRequest): Promise<Outcome> {
    if (hostile.atOnce !== undefined) return await this.sendUnread(hostile, hostile.atOnce)
    let outcome: Outcome | undefined
    while (outcome === undefined) outcome = await this.sendOnce(hostile)
    return outcome
  }

  /** @returns undefined where it was not heard. */
  private async sendOnce(hostile: HostileRequest): Promise<Outcome | undefined> {
    const { method = 'GET', path, body } = hostile
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const { hostname, port } = new URL(this.url)
    const length = (bytes?.length ?? 0) + (hostile.unfinished === true ? 1 : 0)
    const headers = {
      ...hostile.headers,
      ...(bytes && { 'Content-Length': String(length) }),
      'X-Forwarded-For': this.options.address,
    }
    const { agent, options } = this
    return await new Promise<Outcome | undefined>((resolve) => {
      const sent = httpRequest({
        ...{ hostname, port, path, method, headers, agent },
        localAddress: options.address,
      })
      this.open.add(sent)
      const finish = (outcome?: Outcome): void => {
        this.open.delete(sent)
        resolve(outcome)
      }
      sent.on('response', (answer) => {
        void this.read(answer, hostile).then(
          () => finish(answer.statusCode ?? 0),
          () => finish(`cut ${answer.statusCode}`),
        )
      })
      sent.on('error', ({ code, message }: NodeJS.ErrnoException) => {
        if (sent.reusedSocket && (code === 'ECONNRESET' || code === 'EPIPE')) finish()
        else finish(code ?? message)
      })
      // The rest of an unfinished body is never sent; what was written is flushed by itself.
      if (hostile.unfinished === true)
        this.flushed.push(new Promise((done) => sent.write(bytes, () => done())))
      else if (hostile.slow !== undefined && bytes !== undefined) void trickle(sent, bytes, hostile.slow)
      else sent.end(bytes)
    })
  }

  /** Sends a request many times at once, and reads nothing. */
  private async sendUnread(
    { method = 'GET', path, headers, body }: HostileRequest,
    times: number,
  ): Promise<Outcome> {
    const { hostname, port } = new URL(this.url)
    const { address } = this.options
    const bytes = Buffer.from(body ?? '')
    const all = { Host: 'x', 'X-Forwarded-For': address, 'Content-Length': String(bytes.length), ...headers }
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${String(value)}\r\n`)
    const sent = Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`), bytes])
    return await new Promise((resolve) => {
      const socket = connect({ host: hostname, port: Number(port), localAddress: address })
      this.open.add(socket)
      socket.pause().on('error', () => {})
      socket.once('close', () => {
        resolve(this.open.delete(socket) ? 'ended' : 'held')
      })
      for (let at = 0; at < times; at++) socket.write(sent)
    })
  }

  private async read(answer: IncomingMessage, { slow }: HostileRequest): Promise<void> {
    for await (const _ of answer) if (slow !== undefined) await wait(slow.everyMs)
  }

  /** Resolves when all has been written of bodies that are never finished. */
  async sentAll(): Promise<void> {
    await Promise.all(this.flushed)
  }

  /** Hangs up on whatever is still open; what was waited for is `held`. */
  leave(): void {
    for (const sent of this.open) {
      this.open.delete(sent)
      sent.destroy(Object.assign(new Error('held'), { code: 'held' }))
    }
    this.agent.destroy()
  }
}

async function trickle(
  sent: ClientRequest,
  bytes: Uint8Array,
  { chunkBytes, everyMs }: NonNullable<HostileRequest['slow']>,
): Promise<void> {
  for (let at = 0; at < bytes.length && !sent.destroyed; at += chunkBytes) {
    sent.write(bytes.subarray(at, at + chunkBytes))
    await wait(everyMs)
  }
  if (!sent.destroyed) sent.end()
}
