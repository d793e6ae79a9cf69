import { fuzzAdapters, ON_WEB_REQUESTS } from "./fuzz/suite.ts";

fuzzAdapters(ON_WEB_REQUESTS);
