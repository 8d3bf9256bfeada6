import { Ajv2020 } from 'ajv/dist/2020.js'
import type { OpenapiDocument, OperationObject, PathItem } from '../../../src/gateway/openapi/document.js'
import type { Answer, Question } from './test-server.js'

type Method = keyof PathItem
const METHODS: Method[] = ['get', 'head', 'post']

/** A request and its answer. */
export interface InFlightRequest {
  path: string
  question: Question
  answer: Answer
}

interface Judgement {
  /** Where the answer differs from the document. */
  complaints: string[]
  /** The claims of the document that the answer confirms. */
  seen: string[]
}

export interface Contract {
  /** The claims of the document: one line for each answer, header, media type and code of each operation. */
  claims: string[]
  judge(exchange: InFlightRequest): Judgement
}

/** Headers of HTTP itself. `Content-Type` is compared with the media types instead. */
const OF_HTTP = [
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'transfer-encoding',
]

/** Parameters that may contain slashes, which OpenAPI cannot describe. */
const OVER_SLASHES = ['filepath', 'html']

interface Described {
  template: string
  method: Method
  operation: OperationObject
  /** Of its paths. */
  pattern: RegExp
}

/** Makes a document into a contract that answers can be compared with. */
export function contractOf(document: OpenapiDocument): Contract {
  const described = Object.entries(document.paths).flatMap(([template, item]) =>
    METHODS.flatMap((method): Described[] => {
      const operation = item[method]
      return operation === undefined ? [] : [{ template, method, operation, pattern: patternOf(template) }]
    }),
  )
  const validate = validator(document)
  return {
    claims: described.flatMap(claimsOf),
    judge({ path, question, answer }) {
      const asked = new URL(path, 'http://host')
      const method = (question.method ?? 'GET').toLowerCase()
      const found = described
        .filter((each) => each.method === method && each.pattern.test(asked.pathname))
        .sort((one, other) => byExactness(one.template, other.template))[0]
      if (found === undefined) return { complaints: [`${method} ${path} is not described`], seen: [] }
      const answered = judgeAnswer({ found, answer, document, validate })
      const refused = answer.status < 400 ? judgeQuestion({ found, asked, question, validate }) : []
      return { complaints: [...answered.complaints, ...refused], seen: answered.seen }
    },
  }
}

function claimsOf({ template, method, operation }: Described): string[] {
  return Object.entries(operation.responses).flatMap(([status, { headers = {}, content = {} }]) => {
    const line = `${method} ${template} ${status}`
    const codes = Object.values(content).flatMap(({ schema }) => codesIn(schema))
    return [
      line,
      ...Object.keys(headers).map((name) => `${line} ${name}`),
      ...Object.keys(content).map((type) => `${line} as ${type}`),
      ...codes.map((code) => `${line} ${code}`),
    ]
  })
}

function codesIn(schema: unknown): string[] {
  return (schema as { properties?: { code?: { enum?: string[] } } }).properties?.code?.enum ?? []
}

/** Validates values by the schema at a place in the document; returns what is wrong. */
interface Validate {
  json(pointer: string[], value: unknown): string | undefined
  /** The text of a header or a parameter, which is JSON if it is described with a media type. */
  text(
    pointer: string[],
    text: string,
    described: { schema?: unknown; content?: unknown },
  ): string | undefined
}

function validator(document: OpenapiDocument): Validate {
  const json = validation(document, { coerceTypes: false })
  const text = validation(document, { coerceTypes: true })
  return {
    json,
    text: (pointer, value, { content }) =>
      content === undefined
        ? text([...pointer, 'schema'], value)
        : json([...pointer, 'content', 'application/json', 'schema'], JSON.parse(value)),
  }
}

function validation(document: OpenapiDocument, options: { coerceTypes: boolean }): Validate['json'] {
  const ajv = new Ajv2020({ ...options, allErrors: true, code: { optimize: false } })
  ajv.addVocabulary(Object.keys(document))
  ajv.addSchema(document, 'openapi')
  return (pointer, value) => {
    const tokens = pointer.map((token) =>
      encodeURIComponent(token.replaceAll('~', '~0').replaceAll('/', '~1')),
    )
    const check = ajv.getSchema(`openapi#/${tokens.join('/')}`)
    if (check === undefined) throw new Error(`there is no schema at ${pointer.join(' ')}`)
    return check(value) === true
      ? undefined
      : `${pointer.join(' ')}: ${ajv.errorsText(check.errors)} in ${JSON.stringify(value)}`
  }
}

function judgeAnswer({
  found: { template, method, operation },
  answer,
  document,
  validate,
}: {
  found: Described
  answer: Answer
  document: OpenapiDocument
  validate: Validate
}): Judgement {
  // `default` describes 500 alone, not any other status.
  const status = answer.status === 500 ? 'default' : String(answer.status)
  const line = `${method} ${template} ${status}`
  const response = operation.responses[status]
  if (response === undefined) return { complaints: [`${line} is not described`], seen: [] }
  const complaints: (string | undefined)[] = []
  const seen = [line]
  const { headers = {}, content = {} } = response
  const names = new Map(Object.keys(headers).map((name) => [name.toLowerCase(), name]))
  for (const [key, value] of Object.entries(answer.headers)) {
    const name = names.get(key)
    if (name !== undefined) {
      seen.push(`${line} ${name}`)
      const header = document.components.headers[name]
      if (header === undefined) throw new Error(`there is no header ${name} among the components`)
      complaints.push(validate.text(['components', 'headers', name], String(value), header))
    } else if (!OF_HTTP.includes(key)) complaints.push(`${line} has a header ${key}`)
  }
  if (method !== 'head') {
    const type = answer.headers['content-type']?.replace(/;.*/, '') ?? ''
    const range = [type, '*/*'].find((each) => each in content)
    if (range !== undefined) {
      seen.push(`${line} as ${range}`)
      if (type === 'application/json') {
        const at = ['paths', template, method, 'responses', status, 'content', range, 'schema']
        complaints.push(validate.json(at, answer.json))
        const { code } = answer.json as { code?: string }
        if (code !== undefined) seen.push(`${line} ${code}`)
      }
    } else if (type !== '' || answer.body.length > 0) complaints.push(`${line} comes as ${type}`)
  }
  return { complaints: complaints.filter((each) => each !== undefined), seen }
}

/** Compares a request that succeeded with what the document lets clients send. */
function judgeQuestion({
  found: { template, method, operation, pattern },
  asked,
  question,
  validate,
}: {
  found: Described
  asked: URL
  question: Question
  validate: Validate
}): string[] {
  const inPath = pattern.exec(asked.pathname)?.groups ?? {}
  const headers = Object.fromEntries(
    Object.entries(question.headers ?? {}).map(([name, value]) => [name.toLowerCase(), String(value)]),
  )
  const complaints: (string | undefined)[] = []
  const queries = new Set(asked.searchParams.keys())
  for (const [at, parameter] of operation.parameters.entries()) {
    const pointer = ['paths', template, method, 'parameters', String(at)]
    const { name, required = false } = parameter
    queries.delete(parameter.in === 'query' ? name : '')
    const text = {
      path: decodeURIComponent(inPath[name] ?? ''),
      query: asked.searchParams.get(name) ?? undefined,
      header: headers[name.toLowerCase()],
    }[parameter.in]
    if (text !== undefined) complaints.push(validate.text(pointer, text, parameter))
    else if (required) complaints.push(`${template} is answered without ${name}`)
  }
  for (const name of queries) complaints.push(`${template} is not said to take ${name}`)
  if (operation.requestBody?.content['application/json'] !== undefined) {
    const at = ['paths', template, method, 'requestBody', 'content', 'application/json', 'schema']
    complaints.push(validate.json(at, JSON.parse(String(question.body))))
  }
  return complaints.filter((each) => each !== undefined)
}

/** Matches the paths of a template, with its parameters as groups, and with or without a trailing slash. */
function patternOf(template: string): RegExp {
  const source = template.replaceAll('.', '\\.').replace(/\{(\w+)\}/g, (_, name: string) => {
    return `(?<${name}>${OVER_SLASHES.includes(name) ? '.+' : '[^/]+'})`
  })
  return new RegExp(`^${source}/?$`)
}

/** Of two templates that match, the one with fewer parameters comes first (OpenAPI 3.1, Paths Object), then the longer. */
function byExactness(one: string, other: string): number {
  const parametersOf = (template: string): number => template.split('{').length
  return parametersOf(one) - parametersOf(other) || other.length - one.length
}
