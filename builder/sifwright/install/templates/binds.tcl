# The entries of a list, as Apptainer reads them (pkg/util/bind). A comma behind a backslash is part of a bind's path.
# Options belong to the bind before them, if it has a target.
proc sifwright_entries {text between} {
    set found {}
    foreach raw [split $text $between] {
        set word [string trim $raw]
        set last [expr {$between eq "," ? [lindex $found end] : ""}]
        set is_option [expr {$word in {ro rw} || [string match id=* $word] || [string match image-src=* $word]}]
        if {[string match {*\\} $last]} {
            lset found end "$last,$raw"
        } elseif {$is_option && [regexp {[^\\]:} $last]} {
            lset found end "$last,$word"
        } elseif {$word ne ""} {
            lappend found $word
        }
    }
    return $found
}

# Text that a list has once: an entry, or the target of a bind. A colon behind a backslash is part of a path.
proc sifwright_target {entry between} {
    if {$between ne ","} { return $entry }
    set parts [split [string map {\\: \n} $entry] :]
    return [string map {\n :} [lindex $parts [expr {[llength $parts] > 1}]]]
}
