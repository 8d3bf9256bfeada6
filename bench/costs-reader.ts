import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { HostileRequest } from '../test/costs/attack.js'
import { HonestSubmissions } from '../test/costs/honest.js'

/** What this process is told. */
export type ReaderOrder = { order: 'read'; url: string; path: string; submits: boolean } | { order: 'stop' }

/** What it tells of the time between the two orders, in milliseconds. */
export interface ReaderReport {
  reads: number
  /** The longest wait for an answer, one that has not come yet among them. */
  longest: number
  /** The longest without what the machine kept an idle thread of this process waiting meanwhile. */
  owed: number
  /** The longest that the machine kept an idle thread waiting. */
  idle: number
  /** How long the honest submissions took until they were admitted; the last may still be under way. */
  submissions: { admitted: boolean; took: number; refusals: number[] }[]
}

/** A pause of the idle thread, and a wait of the reader: from when to when, in milliseconds of the system's clock. */
interface Span {
  from: number
  to: number
}

/** Pauses shorter than this are the clock's. */
const SHORTEST_PAUSE = 3
/** How long an honest client waits before it submits what was refused again, and between submissions. */
const AGAIN = 250
/** What honest readers and submitters have for an address: it is not the attacker's. */
const ADDRESS = '127.0.0.3'

const now = (): number => Number(process.hrtime.bigint() / 1000n) / 1000

/**
 * The process of those who mean no harm, beside an attack: a reader that asks for the same 4 KiB over and over, a client
 * that submits small inscriptions, and a thread that looks at the clock, to tell what the machine makes everybody wait.
 */
class Honest {
  private isOver = false
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 1, localAddress: ADDRESS })
  private readonly waits: Span[] = []
  private readonly honest = new HonestSubmissions()
  private reads = 0
  private asked: number | undefined
  private readonly submissions: (ReaderReport['submissions'][number] & { since: number })[] = []

  constructor(
    private readonly told: Extract<ReaderOrder, { order: 'read' }>,
    private readonly idle: IdleThread,
  ) {
    this.idle.forget()
    void this.read()
    if (told.submits) void this.submit()
  }

  private async read(): Promise<void> {
    while (!this.isOver) {
      this.asked = now()
      const status = await this.ask({ path: this.told.path, agent: this.agent })
      if (this.isOver) return
      this.waits.push({ from: this.asked, to: now() })
      if (this.waits.length > 2000) this.keepLongest()
      if (status !== 200) await wait(AGAIN)
      this.reads++
      await wait(2)
    }
  }

  private keepLongest(): void {
    this.waits.sort((a, b) => b.to - b.from - (a.to - a.from))
    this.waits.length = 50
  }

  private async submit(): Promise<void> {
    await wait(AGAIN)
    while (!this.isOver) {
      const { path, headers, body } = this.honest.next()
      const submission = { since: now(), admitted: false, took: 0, refusals: [] as number[] }
      this.submissions.push(submission)
      while (!this.isOver && !submission.admitted) {
        const status = await this.ask({ path, headers, body })
        if (this.isOver) return
        submission.took = now() - submission.since
        if (status === 200) submission.admitted = true
        else submission.refusals.push(status)
        await wait(AGAIN)
      }
    }
  }

  private async ask(
    question: Pick<HostileRequest, 'path' | 'headers' | 'body'> & { agent?: Agent },
  ): Promise<number> {
    const { body, ...asked } = question
    return await new Promise((resolve) => {
      const { hostname, port } = new URL(this.told.url)
      const method = body === undefined ? 'GET' : 'POST'
      const sent = request({ hostname, port, method, localAddress: ADDRESS, ...asked }, (answer) => {
        answer.resume()
        answer.on('end', () => resolve(answer.statusCode ?? 0))
        answer.on('error', () => resolve(0))
      })
      sent.on('error', () => resolve(0))
      sent.end(body)
    })
  }

  /** What came of it so far; nothing more is asked for. */
  async end(): Promise<ReaderReport> {
    const end = now()
    this.isOver = true
    if (this.asked !== undefined) this.waits.push({ from: this.asked, to: end })
    for (const submission of this.submissions)
      if (!submission.admitted) submission.took = end - submission.since
    const pauses = await this.idle.pauses()
    const waits = [...this.waits]
    this.agent.destroy()
    const longest = Math.max(0, ...waits.map(({ from, to }) => to - from))
    const owed = Math.max(0, ...waits.map((span) => span.to - span.from - overlap(span, pauses)))
    const idle = Math.max(0, ...pauses.map(({ from, to }) => to - from))
    return { reads: this.reads, longest, owed, idle, submissions: this.submissions }
  }
}

function overlap(span: Span, pauses: readonly Span[]): number {
  let sum = 0
  for (const { from, to } of pauses) sum += Math.max(0, Math.min(to, span.to) - Math.max(from, span.from))
  return sum
}

/** A thread that does nothing but look at the clock. */
class IdleThread {
  private constructor(private readonly worker: Worker) {}

  static async start(): Promise<IdleThread> {
    const worker = new Worker(
      `const { parentPort } = require('node:worker_threads')
       const now = () => Number(process.hrtime.bigint() / 1000n) / 1000
       let pauses = []
       let last = now()
       setInterval(() => {
         const at = now()
         if (at - last - 1 > ${SHORTEST_PAUSE}) pauses.push({ from: last + 1, to: at })
         last = at
       }, 1)
       parentPort.on('message', (told) => {
         if (told === 'pauses') parentPort.postMessage(pauses)
         pauses = []
       })`,
      { eval: true },
    )
    await once(worker, 'online')
    return new IdleThread(worker)
  }

  forget(): void {
    this.worker.postMessage('forget')
  }

  async pauses(): Promise<Span[]> {
    const told = once(this.worker, 'message')
    this.worker.postMessage('pauses')
    return (await told)[0] as Span[]
  }
}

const idle = await IdleThread.start()
let honest: Honest | undefined
process.on('message', async (told: ReaderOrder) => {
  if (told.order === 'read') honest = new Honest(told, idle)
  else process.send?.(await honest?.end())
})
process.once('SIGTERM', () => process.exit())
process.once('disconnect', () => process.exit())
process.send?.('ready')
