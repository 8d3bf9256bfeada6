import { setTimeout as sleep } from 'node:timers/promises'
import {
  type ServerProcess,
  startServerProcess,
  type Usage,
} from '../../test/support/server/server-process.js'
import { type Answer, ask, type Environment, type Question } from '../../test/support/server/test-server.js'

/** One run of the server, from its start to its end. */
export interface Life {
  server: ServerProcess
  /** Set before the signal is sent: what fails from then on, fails because of it. */
  isKilled: boolean
  samples: Usage[]
}

/** What a client was answered, and whether it had to ask again because the server was killed meanwhile. */
export interface Answered {
  answer: Answer
  wasCutOff: boolean
}

const A_SAMPLE = 250

/**
 * A server that is killed and started again on the same folder. Clients that ask it wait while it is away, and ask again
 * what was cut off.
 */
export class Lives {
  readonly past: Life[] = []
  private current: Promise<Life>
  private underWay = 0
  private readonly sampling: NodeJS.Timeout

  constructor(
    private readonly options: {
      main: string
      env: Environment
      /** How long an answer may take, in milliseconds. */
      patience: number
    },
  ) {
    this.current = this.begin()
    this.sampling = setInterval(() => {
      void this.current.then(({ server, samples }) => {
        const usage = server.usage()
        if (usage !== undefined) samples.push(usage)
      })
    }, A_SAMPLE)
  }

  /** @throws Error where there is no answer, and nobody killed the server. */
  async ask(path: string, question: Question = {}): Promise<Answered> {
    for (let wasCutOff = false; ; wasCutOff = true) {
      const life = await this.current
      if (question.method === 'POST') this.underWay++
      try {
        const answer = await this.within(ask(life.server.url, path, question))
        // A reader may say that the process that writes is gone, before it ends itself.
        if (answer.status !== 503 || !life.isKilled) return { answer, wasCutOff }
        await life.server.ended
      } catch (error) {
        if (!life.isKilled) throw error
        await life.server.ended
      } finally {
        if (question.method === 'POST') this.underWay--
      }
    }
  }

  /**
   * Kills the server while something is sent to it, and starts it again; `between` is done before any client asks the
   * new one.
   */
  async kill(
    between: (askNew: (path: string, question?: Question) => Promise<Answer>) => Promise<void>,
  ): Promise<void> {
    const life = await this.current
    while (this.underWay === 0) await sleep(1)
    life.isKilled = true
    this.current = (async () => {
      await life.server.kill('SIGKILL')
      this.past.push(life)
      const next = await this.begin()
      await between((path, question) => this.within(ask(next.server.url, path, question)))
      return next
    })()
    await this.current
  }

  /** Stops the server as an operator does. */
  async end(): Promise<void> {
    clearInterval(this.sampling)
    const life = await this.current
    const { code, stderr } = await life.server.kill('SIGTERM')
    this.past.push(life)
    if (code !== 0) throw new Error(`the server ended with ${code}: ${stderr}`)
  }

  private async begin(): Promise<Life> {
    const { main, env } = this.options
    return { server: await startServerProcess({ main, env }), isKilled: false, samples: [] }
  }

  private async within(answer: Promise<Answer>): Promise<Answer> {
    const giveUp = new AbortController()
    const { patience } = this.options
    const late = sleep(patience, undefined, { signal: giveUp.signal }).then((): never => {
      throw new Error(`no answer within ${patience} ms`)
    })
    try {
      return await Promise.race([answer, late])
    } finally {
      giveUp.abort()
      late.catch(() => {})
    }
  }
}
