import { PassThrough } from 'node:stream'
import picocolors from 'picocolors'
import { CommandOutput, hasColors, ProgressLine, type Stream } from '../../../src/cli/output.js'
import { confirmPayment } from '../../../src/cli/payment.js'
import { readable } from '../../../src/cli/terminal-log.js'
import { createLogger } from '../../../src/server/telemetry/logger.js'

/** A stream, as a terminal or a file, and what was written to it. */
function stream(isTTY: boolean, columns = 80): { stream: Stream; written: () => string } {
  const through = Object.assign(new PassThrough(), { isTTY, columns })
  let written = ''
  through.on('data', (chunk: Buffer) => (written += chunk.toString('utf8')))
  return { stream: through, written: () => written }
}

const ESCAPE = '\x1b'
/** To the start of the line, and all of it gone. */
const CLEAR = `\r${ESCAPE}[K`

test.each<[boolean, boolean, Record<string, string>]>([
  [true, true, {}],
  [false, false, {}],
  [false, true, { NO_COLOR: '1' }],
  [true, true, { NO_COLOR: '' }],
  [true, false, { FORCE_COLOR: '1' }],
  [false, true, { FORCE_COLOR: '0' }],
  [false, false, { FORCE_COLOR: '1', NO_COLOR: '1' }],
  [false, true, { TERM: 'dumb' }],
])('colours %s where the stream is a terminal: %s, with %j', (expected, isTTY, env) => {
  expect(hasColors(stream(isTTY).stream, env)).toBe(expected)
})

describe('the output of a command', () => {
  test('is its result alone on standard output, as text or as JSON', () => {
    for (const json of [false, true]) {
      const [out, err] = [stream(true), stream(true)]
      const env = { NO_COLOR: '1' }
      const output = new CommandOutput({ stdout: out.stream, stderr: err.stream, json, env })
      output.note('a remark')
      output.result({ name: 'a\u202e' }, 'the name', 'is a')
      output.warn('a warning')
      expect(out.written()).toBe(json ? '{"name":"a\\u202e"}\n' : 'the name\nis a\n')
      expect(err.written()).toBe('minetree: a remark\nminetree: a warning\n')
    }
  })

  test('with --json has no colours, on whatever it is', () => {
    const out = stream(true)
    const output = new CommandOutput({ stdout: out.stream, stderr: stream(true).stream, json: true, env: {} })
    expect(output.colors.green('x')).toBe('x')
    expect(output.errorColors.green('x')).toContain(ESCAPE)
  })
})

describe('a payment', () => {
  const confirming = async (answer: string | undefined, isAgreed = false) => {
    const err = stream(true)
    const output = new CommandOutput({
      ...{ stdout: stream(true).stream, stderr: err.stream, json: false },
      env: { NO_COLOR: '1' },
    })
    const questions: string[] = []
    const ask = async (question: string): Promise<string> => {
      questions.push(question)
      return answer ?? ''
    }
    const { signal } = new AbortController()
    const asked = { ask: answer === undefined ? undefined : ask, yes: isAgreed, output, signal }
    await confirmPayment(['at most 5 satoshis'], asked)
    expect(err.written()).toBe('minetree: at most 5 satoshis\n')
    return questions
  }

  test.each(['y', 'Y', 'yes', ' YES '])('is made where the answer is %j', async (answer) => {
    expect(await confirming(answer)).toEqual(['minetree: pay? [y/N] '])
  })

  test.each(['', 'n', 'no', 'yesterday', 'yy'])('is not made where the answer is %j', async (answer) => {
    await expect(confirming(answer)).rejects.toMatchObject({ message: 'nothing was paid', exit: 'refused' })
  })

  test('is not made where nobody can be asked, unless --yes says so', async () => {
    await expect(confirming(undefined)).rejects.toMatchObject({ exit: 'usage' })
    expect(await confirming('n', true)).toEqual([])
  })
})

describe('a progress line', () => {
  test('is written over on a terminal, fits into it, and is gone at the end', () => {
    const { stream: terminal, written } = stream(true, 60)
    const line = new ProgressLine(terminal, picocolors.createColors(false))
    line.update(() => ({ text: 'x'.repeat(200), share: 0.5 }))
    expect(written().startsWith(CLEAR)).toBe(true)
    const shown = written().slice(CLEAR.length)
    expect(shown).toMatch(/^█{12}░{12} {2}50 % {2}x+ {2}0:00$/)
    expect(shown.length).toBeLessThan(60)
    line.end()
    expect(written().endsWith(CLEAR)).toBe(true)
  })

  test('leaves nothing in a file of what is over soon', () => {
    const { stream: file, written } = stream(false)
    const line = new ProgressLine(file, picocolors.createColors(false))
    line.update(() => ({ text: 'soon over' }))
    line.end()
    expect(written()).toBe('')
  })
})

test('the log on a terminal is text for a person, and no character that the terminal obeys comes through', async () => {
  const format = await readable(false)
  let written = ''
  const logger = createLogger({ level: 'info', write: (line) => (written += format(line)) })
  logger.info({ url: 'http://x/\x1b[2J\u009b31m', deep: { list: ['\x07'] } }, 'said \x1b]0;owned\x07')
  expect(written).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: said \\u001b\]0;owned\\u0007 /)
  expect(written).not.toMatch(/[^\P{C}\n]/u)
  expect(written).toContain('http://x/')
  const colored = await readable(true)
  const line = JSON.stringify({ level: 50, time: 0, msg: 'bad' })
  expect(colored(line)).toContain(`${ESCAPE}[31mERROR`)
})
