import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { Block } from '../../../backend/src/graph/records.js'
import { type BlockHeaders, ChainTrackerError, type HeadersStatus, type Verdict } from './chain-tracker.js'

type Method = 'verdict' | 'isValidRootForHeight' | 'currentHeight'

interface Question {
  id: number
  method: Method
  parameters: unknown[]
}

/** `refused` is the message of a ChainTrackerError: an error that is posted loses its class. */
type Reply = { id: number } & ({ answer: unknown } | { refused: string } | { fault: unknown })

/** Answers the questions of {@link SharedHeaders}. Returns the port that these take. */
export function shareHeaders(headers: BlockHeaders): MessagePort {
  const { port1: port, port2 } = new MessageChannel()
  const answer = async ({ method, parameters }: Question): Promise<unknown> => {
    const ask = headers[method] as (...parameters: unknown[]) => Promise<unknown>
    return await ask.apply(headers, parameters)
  }
  port.on('message', async (question: Question) => {
    const { id } = question
    const reply: Reply = await answer(question).then(
      (answer) => ({ id, answer }),
      (error) => (error instanceof ChainTrackerError ? { id, refused: error.message } : { id, fault: error }),
    )
    port.postMessage(reply)
  })
  return port2
}

/** The block headers of another thread of this process, which is asked each question. */
export class SharedHeaders implements BlockHeaders {
  /** What is wrong with the sources, the other thread says. */
  readonly outage = undefined
  private readonly waiting = new Map<number, (reply: Reply) => void>()
  private nextId = 0

  constructor(private readonly port: MessagePort) {
    port.on('message', (reply: Reply) => {
      this.waiting.get(reply.id)?.(reply)
      this.waiting.delete(reply.id)
    })
  }

  verdict(block: Block): Promise<Verdict> {
    return this.ask('verdict', block)
  }

  isValidRootForHeight(root: string, height: number): Promise<boolean> {
    return this.ask('isValidRootForHeight', root, height)
  }

  currentHeight(): Promise<number> {
    return this.ask('currentHeight')
  }

  status(): HeadersStatus {
    return {}
  }

  /** Never called: the other thread reports new tips. */
  onTip(): void {}

  async close(): Promise<void> {
    this.port.close()
  }

  private async ask<Answer>(method: Method, ...parameters: unknown[]): Promise<Answer> {
    const id = this.nextId++
    const reply = await new Promise<Reply>((resolve) => {
      this.waiting.set(id, resolve)
      this.port.postMessage({ id, method, parameters } satisfies Question)
    })
    if ('refused' in reply) throw new ChainTrackerError(reply.refused)
    if ('fault' in reply) throw reply.fault
    return reply.answer as Answer
  }
}
