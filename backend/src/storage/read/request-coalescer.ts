/** How long callers wait for a query in flight, in milliseconds: one that hangs must not hold up the others. */
const PATIENCE = 20

interface Pending<Question, Answer> {
  question: Question
  resolve: (answer: Answer) => void
  reject: (error: unknown) => void
}

/**
 * Batches queries to a database in another process: calls that arrive mid-query join the next batch. A call costs the
 * driver more than anything in it. Every answer is read after its call arrived.
 */
export class RequestCoalescer<Question, Answer> {
  private waiting: Pending<Question, Answer>[] = []
  private inFlight = 0
  private isPlanned = false

  /**
   * @param options.query Answers the questions, in their order.
   * @param options.batchSize How many at most; a full batch does not wait for the query in flight.
   */
  constructor(
    private readonly options: { query: (questions: Question[]) => Promise<Answer[]>; batchSize: number },
  ) {}

  /** @throws what `query` throws, to all callers in the batch. */
  ask(question: Question): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ question, resolve, reject })
      this.plan()
    })
  }

  private plan(): void {
    const isFull = this.waiting.length >= this.options.batchSize
    if (this.isPlanned || this.waiting.length === 0 || (this.inFlight > 0 && !isFull)) return
    this.isPlanned = true
    // By then, all callers that run concurrently have called.
    queueMicrotask(() => {
      this.isPlanned = false
      void this.send(this.waiting.splice(0, this.options.batchSize))
      this.plan()
    })
  }

  private async send(batch: Pending<Question, Answer>[]): Promise<void> {
    this.inFlight++
    let isOver = false
    const end = (): void => {
      if (isOver) return
      isOver = true
      this.inFlight--
      this.plan()
    }
    const timer = setTimeout(end, PATIENCE)
    try {
      const answers = await this.options.query(batch.map(({ question }) => question))
      for (const [index, { resolve }] of batch.entries()) resolve(answers[index] as Answer)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    } finally {
      clearTimeout(timer)
      end()
    }
  }
}

/** Coalesces concurrent calls of one query. */
export function coalesced<Answer>(query: () => Promise<Answer>): () => Promise<Answer> {
  const coalescer = new RequestCoalescer<undefined, Answer>({
    batchSize: Number.POSITIVE_INFINITY,
    query: async (questions) => {
      const answer = await query()
      return questions.map(() => answer)
    },
  })
  return () => coalescer.ask(undefined)
}
