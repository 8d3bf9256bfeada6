/** How long those who ask wait for the answer before, in milliseconds: one that hangs is not to keep the others waiting. */
const PATIENCE = 20

interface Asking<Question, Answer> {
  question: Question
  answer: (answer: Answer) => void
  fail: (error: unknown) => void
}

/**
 * Asks a database that is another process what many want to know at the same time in one go: whoever comes while an
 * answer is under way is asked for with the next. So a call, which takes a driver longer than anything in it, is made
 * once for all of them. What is answered was read after each of them had asked.
 */
export class RequestCoalescer<Question, Answer> {
  private waiting: Asking<Question, Answer>[] = []
  private underWay = 0
  private isPlanned = false

  /**
   * @param options.ask Answers each question, in their order.
   * @param options.atOnce How many at the most; where as many wait, they do so for no answer.
   */
  constructor(
    private readonly options: { ask: (questions: Question[]) => Promise<Answer[]>; atOnce: number },
  ) {}

  /** @throws what `ask` throws, as all whose question was among those. */
  ask(question: Question): Promise<Answer> {
    return new Promise((answer, fail) => {
      this.waiting.push({ question, answer, fail })
      this.plan()
    })
  }

  private plan(): void {
    const isFull = this.waiting.length >= this.options.atOnce
    if (this.isPlanned || this.waiting.length === 0 || (this.underWay > 0 && !isFull)) return
    this.isPlanned = true
    // Those who ask side by side have all asked by then.
    queueMicrotask(() => {
      this.isPlanned = false
      void this.send(this.waiting.splice(0, this.options.atOnce))
      this.plan()
    })
  }

  private async send(asked: Asking<Question, Answer>[]): Promise<void> {
    this.underWay++
    let isOver = false
    const over = (): void => {
      if (isOver) return
      isOver = true
      this.underWay--
      this.plan()
    }
    const timer = setTimeout(over, PATIENCE)
    try {
      const answers = await this.options.ask(asked.map(({ question }) => question))
      for (const [index, { answer }] of asked.entries()) answer(answers[index] as Answer)
    } catch (error) {
      for (const { fail } of asked) fail(error)
    } finally {
      clearTimeout(timer)
      over()
    }
  }
}

/** One question, which many ask at the same time. */
export function coalesced<Answer>(ask: () => Promise<Answer>): () => Promise<Answer> {
  const together = new RequestCoalescer<undefined, Answer>({
    atOnce: Number.POSITIVE_INFINITY,
    ask: async (questions) => {
      const answer = await ask()
      return questions.map(() => answer)
    },
  })
  return () => together.ask(undefined)
}
