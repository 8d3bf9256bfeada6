import { config } from 'zod/mini'

// Zod probes whether it may compile schemas; the page's content security policy forbids that, and browsers would report
// it. This must run before any schema is created.
config({ jitless: true })
