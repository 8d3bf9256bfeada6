import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { reasonOf } from './config/errors.js'
import { type HttpServer, listen, openHttpServer } from './http/http-server.js'
import { createReaderApp } from './reader-app.js'
import type { StoreChange } from './store/caching-store.js'
import type { IndexStatus } from './store/index-maintenance.js'
import type { LogRecord } from './submission/submission-worker.js'
import { Metrics, routePrefixes } from './telemetry/metrics.js'
import type { FromReader, Grant, ReaderSetup, ToReader } from './workers/messages.js'
import { isPassedOn } from './workers/passed-on.js'
import { LeasedCounts } from './workers/read-counts.js'
import { openReaderStore, type ReaderStore } from './workers/reader-store.js'

// The program of a reader: a process that answers what needs nothing but the store, which it opens for reading, and passes
// everything else on to the process that writes. That one says what to do, and this process ends with it.

function report(message: FromReader): void {
  // One that cannot be sent is of no use: the process that writes has ended, and this one is about to.
  if (process.connected) process.send?.(message, () => {})
}

// A terminal sends these to all processes of a group. The process that writes says when to end.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})

/** Requests to the process that writes for further reads of a client, by their ids. */
const asked = new Map<number, (grant: Grant) => void>()
let nextId = 0

class Reader {
  index: IndexStatus
  readonly metrics: Metrics
  private server: HttpServer | undefined
  private address: AddressInfo | undefined

  private constructor(
    private readonly setup: ReaderSetup,
    private readonly store: ReaderStore,
  ) {
    this.index = setup.index
    const { caches } = store.graph
    this.metrics = new Metrics({ prefixes: routePrefixes(setup.config.profile), caches })
    this.metrics.addProcess()
  }

  static async open(setup: ReaderSetup): Promise<Reader> {
    return new Reader(setup, await openReaderStore(setup.config, logger))
  }

  async listen(): Promise<AddressInfo> {
    const { setup, store, metrics } = this
    const { config, writer } = setup
    const { limits, logRequests } = config
    const app = createReaderApp({
      ...{ config, writer, logger },
      ...store,
      index: () => this.index,
      port: () => this.address?.port,
      reads: grantedReads(limits.readRate),
    })
    const isCounted = (request: IncomingMessage): boolean => !isPassedOn(request)
    const log = logRequests ? { log: logger } : {}
    this.server = openHttpServer({ app, limits, onEnd: metrics.countRequest, isCounted, ...log })
    await listen(this.server, config)
    this.address = this.server.address() as AddressInfo
    return this.address
  }

  /** Drops what a write has outdated. */
  async outdate(change: StoreChange): Promise<void> {
    await this.store.graph.outdate(change)
  }

  async close(): Promise<void> {
    await this.server?.finish()
    await this.store.close()
  }
}

function grantedReads(rate: number): LeasedCounts {
  return new LeasedCounts({
    rate,
    ask: (client) =>
      new Promise((resolve) => {
        const id = nextId++
        asked.set(id, resolve)
        report({ kind: 'reads wanted', id, client })
      }),
    giveBack: (client, unused) => report({ kind: 'reads returned', client, ...unused }),
  })
}

let reader: Reader | undefined
let logger = pino({ level: 'silent' })

/** Messages that are handled one after another. */
type InOrder = Extract<ToReader, { kind: 'open' | 'listen' | 'changed' | 'index' | 'ping' }>

async function handle(message: InOrder): Promise<void> {
  if (message.kind === 'open') {
    const { logLevel: level } = message.setup.config
    logger = pino(
      { level },
      { write: (line) => report({ kind: 'logged', record: JSON.parse(line) as LogRecord }) },
    )
    reader = await Reader.open(message.setup)
    report({ kind: 'opened' })
    return
  }
  if (message.kind === 'listen') {
    const address = await reader?.listen()
    if (address !== undefined) report({ kind: 'listening', address })
    return
  }
  if (message.kind === 'changed') await reader?.outdate(message.change)
  if (message.kind === 'index' && reader !== undefined) reader.index = message.index
  report({ kind: 'acknowledged', id: message.id, answered: reader?.metrics.answered ?? 0 })
}

let handled: Promise<void> = Promise.resolve()

process.on('message', (message: ToReader) => {
  switch (message.kind) {
    case 'granted':
      asked.get(message.id)?.(message.grant)
      asked.delete(message.id)
      break
    case 'measure':
      void reader?.metrics.values().then((metrics) => report({ kind: 'measured', id: message.id, metrics }))
      break
    case 'finish':
      handled = handled.then(end)
      break
    default:
      handled = handled.then(() => handle(message)).catch(fail)
  }
})

report({ kind: 'loaded' })

async function end(): Promise<void> {
  await reader?.close()
  process.disconnect()
}

/** A reader that missed a change would answer wrongly: another one takes its place. */
function fail(error: unknown): void {
  const message: FromReader = { kind: 'failed', reason: reasonOf(error) }
  process.send?.(message, () => process.exit(1))
}
