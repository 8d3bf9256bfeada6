import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { HostileRequest } from '../test/system/costs/attack.js'
import { HonestSubmissions } from '../test/system/costs/honest.js'
import { inLineOf } from './support.js'

/** The orders to this process. */
export type ReaderOrder =
  | { order: 'read'; url: string; pid: number; path: string; submits: boolean }
  | { order: 'stop' }

/** The report on the time between the two orders, in milliseconds. */
export interface ReaderReport {
  reads: number
  /** The longest wait for an answer, including one that has not come yet. */
  longest: number
  /** The longest wait without the time in which server or reader had work, but the machine ran others. */
  owed: number
  /** The longest time that the machine kept an idle thread waiting. */
  idle: number
  /** How long each honest submission took until it was admitted, and that without the same time; the last may still be open. */
  submissions: { admitted: boolean; took: number; owed: number; refusals: number[] }[]
}

/** A moment: milliseconds of the system's clock, and how long server and reader have waited for a core until then. */
interface Moment {
  at: number
  inLine: number
}

/** How long something took, and how much of that the server owes. */
interface Wait {
  took: number
  owed: number
}

/** How long an honest client waits between submissions, and before it repeats a refused one. */
const AGAIN = 250
/** The address of honest readers and submitters, which is not the attacker's. Submitters count as strangers. */
const ADDRESS = '127.0.0.3'

/**
 * The process of honest clients during an attack: a reader that requests the same 4 KiB over and over, a client that submits
 * small inscriptions, and a thread that watches the clock, to tell how long the machine makes everybody wait.
 */
class Honest {
  private isOver = false
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 1, localAddress: ADDRESS })
  private readonly waits: Wait[] = []
  private readonly honest = new HonestSubmissions()
  private reads = 0
  private asked: Moment | undefined
  private readonly submissions: (ReaderReport['submissions'][number] & { since: Moment })[] = []

  constructor(
    private readonly reading: Extract<ReaderOrder, { order: 'read' }>,
    private readonly idle: IdleThread,
  ) {
    this.idle.forget()
    void this.read()
    if (reading.submits) void this.submit()
  }

  private async read(): Promise<void> {
    while (!this.isOver) {
      this.asked = this.now()
      const status = await this.ask({ path: this.reading.path, agent: this.agent })
      if (this.isOver) return
      this.waits.push(this.since(this.asked))
      if (this.waits.length > 2000) this.keepLongest()
      if (status !== 200) await wait(AGAIN)
      this.reads++
      await wait(2)
    }
  }

  private keepLongest(): void {
    const longest = Math.max(...this.waits.map(({ took }) => took))
    const owed = Math.max(...this.waits.map((each) => each.owed))
    this.waits.splice(0, this.waits.length, { took: longest, owed })
  }

  private async submit(): Promise<void> {
    await wait(AGAIN)
    while (!this.isOver) {
      const { path, headers, body } = this.honest.next()
      const submission = { since: this.now(), admitted: false, took: 0, owed: 0, refusals: [] as number[] }
      this.submissions.push(submission)
      while (!this.isOver && !submission.admitted) {
        const status = await this.ask({ path, headers: { ...headers, 'X-Forwarded-For': ADDRESS }, body })
        if (this.isOver) return
        Object.assign(submission, this.since(submission.since))
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
      const { hostname, port } = new URL(this.reading.url)
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

  private now(): Moment {
    return { at: performance.now(), inLine: inLineOf(this.reading.pid) + inLineOf(process.pid) }
  }

  private since({ at, inLine }: Moment): Wait {
    const now = this.now()
    const took = now.at - at
    return { took, owed: Math.max(0, took - Math.max(0, now.inLine - inLine)) }
  }

  /** Stops, and reports the results so far. */
  async end(): Promise<ReaderReport> {
    this.isOver = true
    if (this.asked !== undefined) this.waits.push(this.since(this.asked))
    for (const submission of this.submissions)
      if (!submission.admitted) Object.assign(submission, this.since(submission.since))
    this.agent.destroy()
    const longest = Math.max(0, ...this.waits.map(({ took }) => took))
    const owed = Math.max(0, ...this.waits.map((each) => each.owed))
    const idle = await this.idle.longest()
    return { reads: this.reads, longest, owed, idle, submissions: this.submissions }
  }
}

/** A thread that only watches the clock. */
class IdleThread {
  private constructor(private readonly worker: Worker) {}

  static async start(): Promise<IdleThread> {
    const worker = new Worker(
      `const { parentPort } = require('node:worker_threads')
       const delays = require('node:perf_hooks').monitorEventLoopDelay({ resolution: 1 })
       delays.enable()
       parentPort.on('message', (message) => {
         if (message === 'longest') parentPort.postMessage(delays.max / 1e6)
         delays.reset()
       })`,
      { eval: true },
    )
    await once(worker, 'online')
    return new IdleThread(worker)
  }

  forget(): void {
    this.worker.postMessage('forget')
  }

  /** The longest time that the machine kept it from that, in milliseconds. */
  async longest(): Promise<number> {
    const answer = once(this.worker, 'message')
    this.worker.postMessage('longest')
    return (await answer)[0]
  }
}

const idle = await IdleThread.start()
let honest: Honest | undefined
process.on('message', async (command: ReaderOrder) => {
  if (command.order === 'read') honest = new Honest(command, idle)
  else process.send?.(await honest?.end())
})
process.once('SIGTERM', () => process.exit())
process.once('disconnect', () => process.exit())
process.send?.('ready')
