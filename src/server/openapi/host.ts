import { z } from 'zod'
import type { Operation } from '../../gateway/http/operation.js'
import { deploymentShape } from '../routes/deployment-routes.js'
import { healthShape, OK_SHAPE } from '../routes/health-routes.js'
import { MINE_PAGE_FILES } from '../routes/mine-page-routes.js'

const uncached: Operation['answer']['headers'] = ['Cache-Control']
const minePage = {
  description: 'The file as it was built.',
  headers: [
    'Content-Length',
    'Cache-Control',
    'Content-Security-Policy',
    'Cross-Origin-Opener-Policy',
    'Cross-Origin-Resource-Policy',
    'ETag',
    'Referrer-Policy',
    'X-Content-Type-Options',
  ],
} satisfies Operation['answer']

/** About the host, for people and for monitoring. */
export const HOST_OPERATIONS: Operation[] = [
  {
    route: 'GET /deployment.json',
    id: 'deployment',
    tag: 'names',
    summary: 'Which tree of names this host follows, and how names are mined in it',
    answer: { description: 'The tree, as this host claims it.', headers: uncached, json: deploymentShape },
  },
  {
    route: 'GET /mine',
    id: 'minePage',
    tag: 'names',
    summary: 'A page that mines names in the browser',
    query: z.object({
      name: z.string().optional().describe('What the name field holds when the page opens.'),
    }),
    answer: { ...minePage, types: ['text/html'] },
    errors: { NOT_FOUND: 'The page was not built on this host.' },
  },
  {
    route: 'GET /mine/{file}',
    id: 'minePageFile',
    tag: 'names',
    summary: 'A script or a style sheet of that page',
    params: z.object({ file: z.literal(Object.keys(MINE_PAGE_FILES)).describe('The name of the file.') }),
    answer: { ...minePage, types: ['text/html', 'text/javascript', 'text/css'] },
    errors: { NOT_FOUND: 'The page has no such file.' },
  },
  {
    route: 'GET /health/live',
    id: 'live',
    tag: 'health',
    summary: 'Whether the process answers',
    answer: { description: 'It does.', headers: uncached, json: OK_SHAPE },
  },
  {
    route: 'GET /health/ready',
    id: 'ready',
    tag: 'health',
    summary:
      'Whether the store answers and has space, the chain tracker answers, and the index matches the admitted set',
    answer: { description: 'All of that is true.', headers: uncached, json: OK_SHAPE },
    errors: { NOT_READY: 'Something is not; `error` has the first reason, and `/health` all of them.' },
  },
  {
    route: 'GET /health',
    id: 'health',
    tag: 'health',
    summary: 'Liveness and readiness in detail, and what was refused',
    answer: { description: 'The host is ready.', headers: uncached, json: healthShape(true) },
    otherAnswers: {
      503: {
        description: 'The process answers, but is not ready.',
        headers: uncached,
        json: healthShape(false),
      },
    },
  },
  {
    route: 'GET /metrics',
    id: 'metrics',
    tag: 'health',
    summary: 'Metrics for Prometheus',
    description: 'The labels are words of this host, never what a request or a submission contains.',
    answer: {
      description: 'The text format of Prometheus, version 0.0.4.',
      headers: uncached,
      types: ['text/plain'],
    },
  },
  {
    route: 'GET /openapi.json',
    id: 'openapi',
    tag: 'health',
    summary: 'This document',
    answer: {
      description: 'An OpenAPI 3.1 document.',
      headers: ['Cache-Control', 'ETag'],
      json: z.looseObject({}),
    },
  },
]
